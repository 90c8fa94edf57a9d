import { setTimeout as delay } from 'node:timers/promises';
import { TERMINAL } from '../../../src/domain/task.ts';
import type { JoinedSubmission, Operation } from '../checker/evidence.ts';
import { lifeKey } from '../checker/lives.ts';
import type { EventStream } from '../load/event-stream.ts';
import type { Subscriber } from '../load/subscriber.ts';

/** After the last fault everything must have ended by then: leases, backoffs and delays take a part of it. */
const QUIET_WITHIN_MS = 180_000;
const POLL_MS = 200;
const ENDED: ReadonlySet<string> = TERMINAL;

/**
 * Resolves when no message waits in SUBMISSIONS, every acknowledged task is known to the subscriber, every known one has ended, and
 * the other feed has come as far as the subscriber; or complains.
 */
export async function untilQuiet(options: {
  readonly subscriber: Pick<Subscriber, 'statuses' | 'heard'>;
  readonly stream: EventStream;
  readonly operations: readonly Operation[];
  readonly joined: readonly JoinedSubmission[];
  /** How many messages have become no task yet. */
  readonly submissions: () => Promise<number>;
}): Promise<string[]> {
  const { subscriber, stream, submissions } = options;
  const { statuses } = subscriber;
  const submitted = options.operations.filter(({ op }) => op === 'submit');
  const expected = [...submitted, ...options.joined].flatMap(({ outcome, tenant, taskId }) =>
    outcome === 'acknowledged' && taskId !== undefined ? [lifeKey(tenant, taskId)] : [],
  );
  let open: string[] = [];
  let stored = 0;
  let behind = false;
  for (const deadline = Date.now() + QUIET_WITHIN_MS; Date.now() < deadline; await delay(POLL_MS)) {
    open = [
      ...expected.filter((key) => !statuses.has(key)),
      ...[...statuses].filter(([, status]) => !ENDED.has(status)).map(([key, status]) => `${key} ${status}`),
    ];
    behind = (stream.heard.at(-1)?.seq ?? 0) < (subscriber.heard.at(-1)?.seq ?? 0);
    stored = await submissions().catch(() => 1);
    if (open.length === 0 && stored === 0 && !behind) return [];
  }
  const waited = `${QUIET_WITHIN_MS} ms after the last fault`;
  return [
    ...(open.length > 0 ? [`${open.length} tasks have not ended ${waited}, such as ${open[0]}`] : []),
    ...(stored > 0 ? [`${stored} messages have not become tasks ${waited}`] : []),
    ...(behind ? [`the feed over HTTP has not caught up ${waited}`] : []),
  ];
}
