import { randomUUID } from 'node:crypto';
import type { Command, CommandOf } from '../../src/domain/commands.ts';
import type { EventLog } from '../../src/log/event-log.ts';
import { execute } from '../../src/log/handle.ts';
import { claim, deadLetter, fail, ingest, queue, start } from './life.ts';

export interface Death {
  readonly tenant?: string;
  readonly type?: string;
  readonly payload?: CommandOf<'ingest'>['payload'];
  readonly error?: CommandOf<'fail'>['error'];
  readonly final?: CommandOf<'fail'>['final'];
  readonly workerVersion?: string;
  readonly at?: number;
}

/** Takes a task of its own into the log and to its death; resolves with its id and the sequence of its last event. */
export async function die(
  log: Pick<EventLog, 'append' | 'readState'>,
  { tenant = 'acme', type = 'transcode', payload = { clip: 1 }, at = Date.now(), ...failure }: Death = {},
): Promise<{ id: string; seq: number }> {
  const id = randomUUID();
  const life: Command[] = [
    ingest({ taskId: id, tenant, type, payload, policy: { maxRetries: 0 } }),
    queue(),
    claim(),
    start(),
    fail('w1', 1, failure),
    deadLetter(),
  ];
  return { id, seq: await live(log, { tenant, taskId: id }, life, at) };
}

/** Carries the commands out one after the other, each of which must be accepted; resolves with the last sequence. */
export async function live(
  log: Pick<EventLog, 'append' | 'readState'>,
  target: { readonly tenant: string; readonly taskId: string },
  commands: readonly Command[],
  at = Date.now(),
): Promise<number> {
  let seq = 0;
  let known: Parameters<typeof execute>[1]['known'];
  for (const command of commands) {
    const done = await execute(log, { ...target, ...(known === undefined ? {} : { known }) }, () => ({
      ...command,
      eventId: randomUUID(),
      at,
    }));
    if (!done.ok) throw done.error;
    known = done.value.state;
    seq = done.value.seq;
  }
  return seq;
}
