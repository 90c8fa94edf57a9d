import { cpus, totalmem } from 'node:os';

export type Parameter = string | number | boolean;

/** One measured value, printed as one line of JSON. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly params: Readonly<Record<string, Parameter>>;
  readonly machine: Machine;
  /** ISO 8601, when the figure was taken. */
  readonly at: string;
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly node: string;
  readonly nats: string;
}

export const describeMachine = (natsVersion: string): Machine => ({
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: cpus().length,
  memoryGib: Math.round(totalmem() / 2 ** 30),
  node: process.version,
  nats: natsVersion,
});

export const round = (value: number, digits = 0): number => {
  const factor = 10 ** digits;
  return Math.round(value * factor) / factor;
};

/** All figures of a run as columns, for people. */
export function figureTable(figures: readonly Figure[]): string {
  const rows = figures.map(({ name, value, unit, params }) => [
    name,
    value.toLocaleString('en-US', { maximumFractionDigits: 2 }),
    unit,
    Object.entries(params)
      .map(([key, parameter]) => `${key}=${parameter}`)
      .join(' '),
  ]);
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map(([name = '', value = '', unit = '', params = '']) =>
      [name.padEnd(widths[0] ?? 0), value.padStart(widths[1] ?? 0), unit.padEnd(widths[2] ?? 0), params].join(
        '  ',
      ),
    )
    .join('\n');
}
