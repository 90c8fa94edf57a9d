import { spawn } from 'node:child_process';

/** Line 1: the pid to watch. Line 2, if it ever comes: the owner has seen the server's end. End of input: the owner is gone. */
const WATCHDOG = `
read -r pid || exit 0
read -r verdict && exit 0
kill -"$1" "$pid" 2>/dev/null || exit 0
n=0
while kill -0 "$pid" 2>/dev/null; do
  if [ "$n" -ge 100 ]; then
    kill -KILL "$pid" 2>/dev/null
    exit 0
  fi
  n=$((n + 1))
  sleep 0.1
done`;

export interface Watchdog {
  /** The child to stop should this process die. */
  watch(pid: number): void;
  /** The child has ended: its pid may soon be somebody else's. */
  release(): void;
}

/**
 * A small shell process that stops a child in our place when we die without doing it (SIGKILL, a crash): it notices
 * that our end of a pipe has closed. The child gets `stopSignal`, and SIGKILL when it is still there 10 s later.
 */
export function spawnWatchdog(stopSignal: NodeJS.Signals): Watchdog {
  const shell = spawn('/bin/sh', ['-c', WATCHDOG, 'watchdog', stopSignal.replace('SIG', '')], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
  });
  // Without a shell the child still runs; only our own death would go unnoticed.
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  return {
    watch: (pid) => void shell.stdin.write(`${pid}\n`),
    release: () => void shell.stdin.end('released\n'),
  };
}
