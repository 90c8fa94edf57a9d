import type { NatsConnection } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import type { OpenedLog } from '../../../src/log/open.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { byTask, eventOf, newIds, TENANT, walk } from './tasks.ts';
import type { Ground } from './world.ts';

/** A connection that publishes, but hears nothing of the first answer to each message on a task's subject. */
function deafToFirstAnswers(
  nc: NatsConnection,
  onLost: (subject: string) => void = () => {},
): NatsConnection {
  const heard = new Set<string>();
  return new Proxy(nc, {
    get(target, property) {
      if (property !== 'publish') {
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === 'function' ? value.bind(target) : value;
      }
      const publish: NatsConnection['publish'] = (subject, data, options) => {
        const isFirst = subject.includes('tasks.') && !heard.has(subject);
        heard.add(subject);
        target.publish(subject, data, isFirst ? { ...options, reply: 'answers.that.nobody.hears' } : options);
        if (isFirst) onLost(subject);
      };
      return publish;
    },
  });
}

export function lostAnswersDoNoHarm(ground: () => Ground): void {
  describe('an append whose answer is lost', () => {
    const openDeaf = async (): Promise<OpenedLog> =>
      ground().open(deafToFirstAnswers(await ground().connect()));

    test('is tried again, recognised as stored, and stored once', async () => {
      const log = await openDeaf();
      const ids = newIds(50);
      const outcomes = await Promise.all(ids.map((id) => log.append(eventOf('ingest', id, undefined), 0)));
      for (const [n, outcome] of outcomes.entries()) {
        const [stored, ...others] = await log.readTask(TENANT, ids[n] ?? '');
        expect(outcome).toEqual({ status: 'stored', seq: stored?.seq });
        expect(others).toEqual([]);
      }
    });

    test('is recognised even when others have moved the task on meanwhile', async () => {
      const other = await ground().open();
      const [id = ''] = newIds(1);
      const ingested = eventOf('ingest', id, undefined);
      let movedOn: Promise<unknown> = Promise.resolve();
      const nc = deafToFirstAnswers(await ground().connect(), () => {
        movedOn = moveOn();
      });
      const moveOn = async (): Promise<void> => {
        await nc.flush();
        const state = await other.readState(TENANT, id, 1);
        await other.append(eventOf('queue', id, state), state?.seq ?? 0);
      };
      const outcome = await (await ground().open(nc)).append(ingested, 0);
      await movedOn;
      const events = await other.readTask(TENANT, id);
      expect(events.map(({ event }) => event.kind)).toEqual(['INGESTED', 'QUEUED']);
      expect(outcome).toEqual({ status: 'stored', seq: events[0]?.seq });
    });

    test('is a conflict when it was another that stored its event first', async () => {
      const other = await ground().open();
      const log = await openDeaf();
      const [id = ''] = newIds(1);
      const first = await walk(other, id, ['ingest']);
      const outcome = await log.append(eventOf('ingest', id, undefined), 0);
      expect(outcome).toEqual({ status: 'conflict', lastSeq: first?.seq });
    });
  });

  describe('a connection that breaks in the middle of many appends', () => {
    test('loses nothing and doubles nothing', async () => {
      const { port } = new URL(ground().world.urls[0] ?? '');
      const proxy = await startTcpProxy({ port: Number(port) });
      const nc = await ground().connect(`nats://127.0.0.1:${proxy.port}`);
      // In a cluster the client may come back around the proxy; what counts is the cut.
      const log = await ground().open(nc);
      const ids = newIds(3_000);
      let done = 0;
      const cuts = [500, 1_200, 2_000];
      const outcomes = await Promise.all(
        ids.map(async (id) => {
          const outcome = await log.append(eventOf('ingest', id, undefined), 0);
          done += 1;
          if (done === cuts[0]) {
            cuts.shift();
            proxy.cut();
            proxy.pass();
          }
          return outcome;
        }),
      );
      expect(cuts).toEqual([]);
      expect(outcomes.filter(({ status }) => status !== 'stored')).toEqual([]);
      const direct = await ground().open();
      const histories = await Promise.all(ids.map((id) => direct.readTask(TENANT, id)));
      expect(histories.map((events) => events.map(({ seq }) => seq))).toEqual(
        outcomes.map((outcome) => (outcome.status === 'stored' ? [outcome.seq] : [])),
      );
      expect(byTask(histories.flat()).size).toBe(ids.length);
      await log.close();
      await nc.close();
      await proxy.close();
    });
  });
}
