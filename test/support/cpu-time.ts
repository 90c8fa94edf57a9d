/** CPU time that this process has used, in ms: unlike the time on the wall it does not grow while others have the cores. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
