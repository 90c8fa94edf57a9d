const LEVELS: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'WARN',
  50: 'ERROR',
  60: 'FATAL',
};
const COLOURS = [36, 32, 35, 34, 33] as const;

/** Puts the process's name before a line, in a colour of its own, and makes a JSON log line readable. */
export function linePrefixer(options: {
  readonly name: string;
  readonly width: number;
  readonly index: number;
  readonly colour: boolean;
}) {
  const { name, width, index, colour } = options;
  const label = name.padEnd(width);
  const prefix = colour ? `\x1b[${COLOURS[index % COLOURS.length]}m${label}\x1b[0m` : label;
  return (line: string): string => `${prefix} │ ${readable(line)}`;
}

/** A line of the project's own log as `12:34:56 info  message key=value`; anything else as it is. */
export function readable(line: string): string {
  const entry = parseEntry(line);
  if (entry === undefined) return line;
  const { level, time, msg, ...fields } = entry;
  const shown = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const clock = typeof time === 'string' ? time.slice(11, 19) : '';
  return [clock, (LEVELS[level] ?? String(level)).padEnd(5), msg, ...shown]
    .filter((part) => part !== undefined && part !== '')
    .join(' ');
}

interface Entry {
  readonly level: number;
  readonly time?: unknown;
  readonly msg?: string;
  readonly [field: string]: unknown;
}

function parseEntry(line: string): Entry | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return isEntry(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isEntry = (value: unknown): value is Entry =>
  typeof value === 'object' && value !== null && 'level' in value && typeof value.level === 'number';
