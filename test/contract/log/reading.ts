import { describe, expect, test } from 'vitest';
import { fold } from '../../../src/domain/task.ts';
import { createLogReader } from '../../../src/log/reader.ts';
import { silentLogger } from '../../../src/observe/log.ts';
import { byTask, eventOf, type Move, newIds, readAll, TENANT, walk } from './tasks.ts';
import { type Ground, prepare, type World } from './world.ts';

const LIFE: readonly Move[] = ['ingest', 'queue', 'claim', 'start', 'complete'];

export function readingIsComplete(world: () => World, namespace: string): void {
  describe('reading', () => {
    const freshGround = async (work: (ground: Ground) => Promise<void>): Promise<void> => {
      const ground = await prepare(world(), namespace);
      try {
        await work(ground);
      } finally {
        await ground.clear();
      }
    };

    test('gives every sequence once and in order, whatever the size of the batches', () =>
      freshGround(async (ground) => {
        const log = await ground.open();
        await Promise.all(newIds(400).map((id) => walk(log, id, LIFE)));
        const { lastSeq } = await log.bounds();
        for (const maxBatch of [1, 7, 5_000]) {
          const seqs: number[] = [];
          const reader = createLogReader(
            { nc: await ground.connect(), names: ground.names, logger: silentLogger },
            {
              fromSeq: 11,
              maxBatch,
              gatherMs: 5,
              onBatch: (batch) => {
                expect(batch.events.length).toBeLessThanOrEqual(maxBatch);
                expect(batch.lastSeq).toBe(batch.events.at(-1)?.seq);
                seqs.push(...batch.events.map(({ seq }) => seq));
              },
            },
          );
          await reader.start();
          await reader.whenReached(lastSeq);
          expect(reader.position()).toBe(lastSeq);
          await reader.stop();
          expect(seqs).toEqual(Array.from({ length: lastSeq - 10 }, (_, n) => n + 11));
        }
      }));

    test('offers a batch again when it was not taken, and none in the meantime', () =>
      freshGround(async (ground) => {
        const log = await ground.open();
        await Promise.all(newIds(20).map((id) => walk(log, id, ['ingest'])));
        const offered: number[][] = [];
        const reader = createLogReader(
          { nc: await ground.connect(), names: ground.names, logger: silentLogger },
          {
            fromSeq: 1,
            maxBatch: 15,
            gatherMs: 50,
            onBatch: async (batch) => {
              offered.push(batch.events.map(({ seq }) => seq));
              if (offered.length === 1) throw new Error('the database is down');
            },
          },
        );
        await reader.start();
        await reader.whenReached(20);
        await reader.stop();
        expect(offered[1]).toEqual(offered[0]);
        expect(offered.slice(1).flat()).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
      }));

    test('goes on past the bytes that one pull may ask for', () =>
      freshGround(async (ground) => {
        const log = await ground.open();
        const megabytes = 24;
        const noise = Buffer.alloc(1024 * 1024 - 1024, 'x');
        for (let n = 0; n < megabytes; n += 1) {
          const [id = ''] = newIds(1);
          await log.publisher.publish(ground.names.taskEvent(TENANT, 'transcode', id, 'INGESTED'), noise);
        }
        const unreadable: number[] = [];
        const reader = createLogReader(
          { nc: await ground.connect(), names: ground.names, logger: silentLogger },
          {
            fromSeq: 1,
            maxBatch: 1_000,
            gatherMs: 0,
            onBatch: (batch) => {
              unreadable.push(...batch.unreadable.map(({ seq }) => seq));
            },
          },
        );
        await reader.start();
        await reader.whenReached(megabytes);
        await reader.stop();
        expect(unreadable).toEqual(Array.from({ length: megabytes }, (_, n) => n + 1));
      }));

    test('sets aside what is no event, and goes on', () =>
      freshGround(async (ground) => {
        const log = await ground.open();
        const [id = '', other = ''] = newIds(2);
        await walk(log, id, ['ingest']);
        await log.publisher.publish(
          ground.names.taskEvent(TENANT, 'transcode', other, 'INGESTED'),
          'rubbish',
        );
        await log.append(eventOf('ingest', newIds(1)[0] ?? '', undefined), 0);
        const seen: { events: number[]; unreadable: number[] } = { events: [], unreadable: [] };
        const reader = createLogReader(
          { nc: await ground.connect(), names: ground.names, logger: silentLogger },
          {
            fromSeq: 1,
            maxBatch: 10,
            gatherMs: 20,
            onBatch: ({ events, unreadable }) => {
              seen.events.push(...events.map(({ seq }) => seq));
              seen.unreadable.push(...unreadable.map(({ seq }) => seq));
            },
          },
        );
        await reader.start();
        await reader.whenReached(3);
        await reader.stop();
        expect(seen).toEqual({ events: [1, 3], unreadable: [2] });
      }));

    test('a task gives its events in order, and its state from the first event that tells it', () =>
      freshGround(async (ground) => {
        const log = await ground.open();
        const [id = ''] = newIds(1);
        const state = await walk(log, id, LIFE);
        const events = await log.readTask(TENANT, id, state?.seq);
        expect(events.map(({ event }) => event.kind)).toEqual([
          'INGESTED',
          'QUEUED',
          'CLAIMED',
          'PROCESSING',
          'COMPLETED',
        ]);
        expect(await log.readState(TENANT, id, state?.seq)).toMatchObject({
          status: 'COMPLETED',
          seq: state?.seq,
        });
        expect(await log.readEvent(events[1]?.seq ?? 0)).toEqual(events[1]);
        expect(await log.readEvent(1_000_000)).toBeUndefined();
        expect(await log.readTask('other', id)).toEqual([]);
        expect(await log.readState('other', id)).toBeUndefined();
      }));

    test('a task with retries, replays and repeated carries gives every event, from any replica', () =>
      freshGround(async (ground) => {
        const log = await ground.open();
        const life: readonly Move[] = [
          ...([
            'ingest',
            'carry',
            'carry',
            'queue',
            'claim',
            'start',
            'fail',
            'queue',
            'claim',
            'lose',
          ] as const),
          ...(['queue', 'claim', 'start', 'request_cancel', 'carry', 'cancel', 'replay', 'queue'] as const),
          ...([
            'claim',
            'start',
            'fail_for_good',
            'dead_letter',
            'replay',
            'queue',
            'claim',
            'start',
          ] as const),
          ...(['request_cancel', 'complete'] as const),
        ];
        const ids = newIds(20);
        const ends = await Promise.all(ids.map((id) => walk(log, id, life)));
        const expected = byTask(await readAll(ground, { count: ids.length * life.length }));
        for (const [n, id] of ids.entries()) {
          expect(await log.readTask(TENANT, id, ends[n]?.seq)).toEqual(expected.get(id));
        }
        // More than any replica has: the leader is asked, and answers the same.
        expect(await log.readTask(TENANT, ids[0] ?? '', 1_000_000)).toEqual(expected.get(ids[0] ?? ''));
      }));

    test('HISTORY has every event once, in order for each task, under the sequences of TASKS', () =>
      freshGround(async (ground) => {
        const log = await ground.open();
        await Promise.all(newIds(200).map((id) => walk(log, id, LIFE)));
        const tasks = await readAll(ground, { count: 1_000 });
        const history = await readAll(ground, { stream: 'history', count: 1_000 });
        expect(history.map(({ seq, event }) => ({ seq, event }))).toEqual(
          tasks.map(({ seq, event }) => ({ seq, event })),
        );
        for (const events of byTask(history).values()) expect(fold(events)?.status).toBe('COMPLETED');
      }));

    test('the live feed has accepted events only', () =>
      freshGround(async (ground) => {
        const listener = await ground.connect();
        const heard: string[] = [];
        listener.subscribe(ground.names.allFeed, {
          callback: (_error, message) => {
            heard.push((message.json() as { id: string }).id);
          },
        });
        await listener.flush();
        const [log, rival] = [await ground.open(), await ground.open()];
        const ids = newIds(200);
        const accepted = await Promise.all(
          ids.flatMap((id) =>
            [log, rival].map(async (writer) => {
              const event = eventOf('ingest', id, undefined);
              return (await writer.append(event, 0)).status === 'stored' ? [event.id] : [];
            }),
          ),
        );
        // The feed keeps the log's order: when the last event is here, so is all before it.
        const last = eventOf('ingest', newIds(1)[0] ?? '', undefined);
        await log.append(last, 0);
        await expect.poll(() => heard.includes(last.id)).toBe(true);
        expect(heard.toSorted()).toEqual([...accepted.flat(), last.id].toSorted());
      }));
  });
}
