import type { ReadModel } from '../engine/projection.ts';
import { type AuditRow, apply } from './apply.ts';
import { dayOf, Partitions } from './partitions.ts';
import { write } from './sql.ts';

/** Every event, for `auditDays` days by the log's clock. */
export function auditProjection({ auditDays }: { readonly auditDays: number }): ReadModel<AuditRow[]> {
  const partitions = new Partitions(auditDays);
  return {
    name: 'audit',
    tables: [{ name: 'audit', key: ['seq'], storedAt: 'stored_at', seq: 'seq' }],
    apply,
    prepare: (client, rows) =>
      partitions.ensure(client, new Set(rows.map(({ storedAt }) => dayOf(storedAt)))),
    // A log that reaches further back than the audit is kept: its old events are passed over.
    write: (client, rows) =>
      write(
        client,
        rows.filter(({ storedAt }) => partitions.keeps(dayOf(storedAt))),
      ),
    maintain: (client, now) => partitions.maintain(client, now),
  };
}
