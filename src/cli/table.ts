export interface Column {
  readonly title: string;
  readonly align?: 'right';
  /** Takes the width that the others leave, and is cut to it. At most one column is. */
  readonly flexible?: true;
}

const GAP = '  ';
const LEAST_WIDTH = 8;

/** Rows under their titles, no line longer than `width` unless the fixed columns alone are. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
): string {
  const lines = [columns.map(({ title }) => title), ...rows].map((cells) => cells.map(printable));
  const wanted = columns.map((_, index) => Math.max(...lines.map((cells) => cells[index]?.length ?? 0)));
  const fixed = columns.reduce((sum, { flexible }, index) => sum + (flexible ? 0 : (wanted[index] ?? 0)), 0);
  const room = Math.max(LEAST_WIDTH, width - fixed - GAP.length * (columns.length - 1));
  const widths = columns.map(({ flexible }, index) =>
    flexible ? Math.min(room, wanted[index] ?? 0) : (wanted[index] ?? 0),
  );
  return lines
    .map((cells) =>
      columns
        .map(({ align }, index) => {
          const cell = cut(cells[index] ?? '', widths[index] ?? 0);
          return align === 'right' ? cell.padStart(widths[index] ?? 0) : cell.padEnd(widths[index] ?? 0);
        })
        .join(GAP)
        .trimEnd(),
    )
    .join('\n');
}

/**
 * A table of rows that begin with their tenants. They are shown unless one tenant was asked for: commands on a task want
 * its tenant of an operator.
 */
export const tableOfTenants = (
  columns: readonly Column[],
  rows: readonly (readonly [tenant: string, ...cells: string[]])[],
  { tenant, width }: { readonly tenant: string | undefined; readonly width: number },
): string =>
  tenant === undefined
    ? table([{ title: 'TENANT' }, ...columns], rows, width)
    : table(
        columns,
        rows.map(([, ...cells]) => cells),
        width,
      );

/** Facts with their names before them, each on a line of at most `width`. */
export function facts(
  entries: readonly (readonly [name: string, value: string | undefined])[],
  width: number,
): string {
  const shown = entries.filter((entry): entry is [string, string] => entry[1] !== undefined);
  const nameWidth = Math.max(...shown.map(([name]) => name.length));
  return shown
    .map(
      ([name, value]) =>
        `${name.padEnd(nameWidth)}${GAP}${cut(printable(value), width - nameWidth - GAP.length)}`,
    )
    .join('\n');
}

export const cut = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;

/** Text of others must not steer the terminal: control characters become dots. */
export const printable = (text: string): string => text.replace(/\p{Cc}+/gu, '·');
