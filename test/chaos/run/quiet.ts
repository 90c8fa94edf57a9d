import { setTimeout as delay } from 'node:timers/promises';
import { TERMINAL } from '../../../src/domain/task.ts';
import type { Operation } from '../checker/evidence.ts';
import { lifeKey } from '../checker/lives.ts';
import type { EventStream } from '../load/event-stream.ts';
import type { Subscriber } from '../load/subscriber.ts';

/** After the last fault everything must have ended by then: leases, backoffs and delays take a part of it. */
const QUIET_WITHIN_MS = 180_000;
const POLL_MS = 200;
const ENDED: ReadonlySet<string> = TERMINAL;

/**
 * Resolves when every acknowledged task is known to the subscriber, every known one has ended, and the other feed has
 * come as far as the subscriber; or complains.
 */
export async function untilQuiet(options: {
  readonly subscriber: Pick<Subscriber, 'statuses' | 'heard'>;
  readonly stream: EventStream;
  readonly operations: readonly Operation[];
}): Promise<string[]> {
  const { subscriber, stream } = options;
  const { statuses } = subscriber;
  const expected = options.operations
    .filter(({ op, outcome }) => op === 'submit' && outcome === 'acknowledged')
    .map(({ tenant, taskId }) => lifeKey(tenant, taskId));
  let open: string[] = [];
  let behind = false;
  for (const deadline = Date.now() + QUIET_WITHIN_MS; Date.now() < deadline; await delay(POLL_MS)) {
    open = [
      ...expected.filter((key) => !statuses.has(key)),
      ...[...statuses].filter(([, status]) => !ENDED.has(status)).map(([key, status]) => `${key} ${status}`),
    ];
    behind = (stream.heard.at(-1)?.seq ?? 0) < (subscriber.heard.at(-1)?.seq ?? 0);
    if (open.length === 0 && !behind) return [];
  }
  const waited = `${QUIET_WITHIN_MS} ms after the last fault`;
  return [
    ...(open.length > 0 ? [`${open.length} tasks have not ended ${waited}, such as ${open[0]}`] : []),
    ...(behind ? [`the feed over HTTP has not caught up ${waited}`] : []),
  ];
}
