import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import { ensureStreams, ensureWorkConsumer } from '../../../src/log/streams.ts';
import { names } from '../../../src/log/subjects.ts';
import { silentLogger } from '../../../src/observe/log.ts';
import { type Ground, prepare, type World } from './world.ts';

const HOUR_MS = 3_600_000;

export function streamsAreMade(world: () => World, ground: () => Ground, namespace: string): void {
  describe('the streams', () => {
    test('are made once by four processes that start together, and left alone by a fifth', async () => {
      const { config } = ground();
      const prefix = `${namespace.slice(0, -1)}together_`;
      const parts = { names: names(prefix), config: { ...config, prefix }, logger: silentLogger };
      const connections = await Promise.all(Array.from({ length: 4 }, () => ground().connect()));
      await Promise.all(connections.map((nc) => ensureStreams({ nc, ...parts })));
      const nc = await ground().connect();
      await ensureStreams({ nc, ...parts });
      const jsm = await jetstreamManager(nc);
      const made: string[] = [];
      for await (const { config: stream } of jsm.streams.list())
        if (stream.name.includes(prefix)) made.push(stream.name.replace(prefix, ''));
      const { streams, buckets } = names('');
      const wanted = [...Object.values(streams), ...Object.values(buckets).map((bucket) => `KV_${bucket}`)];
      expect(made.toSorted()).toEqual(wanted.toSorted());
      for (const name of made) {
        const stream = name.startsWith('KV_') ? name.replace('KV_', `KV_${prefix}`) : `${prefix}${name}`;
        expect((await jsm.streams.info(stream)).config.num_replicas).toBe(world().replicas);
        await jsm.streams.delete(stream);
      }
    });

    test('follow a changed hot window', async () => {
      const fresh = await prepare(world(), namespace);
      const nc = await fresh.connect();
      const config = { ...fresh.config, hotWindowHours: 48 };
      await ensureStreams({ nc, names: fresh.names, config, logger: silentLogger });
      const jsm = await jetstreamManager(nc);
      const stream = await jsm.streams.info(fresh.names.streams.tasks);
      expect(stream.config.max_age).toBe(nanos(48 * HOUR_MS));
      expect(stream.config.republish).toMatchObject({ dest: fresh.names.allFeed });
      await fresh.clear();
    });

    test('that store what earlier releases had them store lose those subjects, and nothing else', async () => {
      const fresh = await prepare(world(), namespace);
      const { names: own, config } = fresh;
      const nc = await fresh.connect();
      const jsm = await jetstreamManager(nc);
      const subjects = [...own.timerSubjects, ...own.formerSubjects];
      await jsm.streams.update(own.streams.timers, { subjects });
      const [former = ''] = own.formerSubjects;
      const js = jetstream(nc);
      await js.publish(own.alarm('kept'), 'kept');
      await js.publish(former.replace('>', 'one'), 'kept too');
      const before = await jsm.streams.info(own.streams.timers);
      await ensureStreams({ nc, names: own, config, logger: silentLogger });
      const after = await jsm.streams.info(own.streams.timers);
      expect(after.config).toEqual({ ...before.config, subjects: own.timerSubjects });
      expect(after.state).toMatchObject({ messages: 2, last_seq: before.state.last_seq });
      await js.publish(own.alarm('more'), 'taken');
      await expect(js.publish(former.replace('>', 'two'), 'not taken')).rejects.toThrow();
      await fresh.clear();
    });

    test('that do not keep the promises are refused, and the setting is named', async () => {
      const prefix = `${namespace.slice(0, -1)}strange_`;
      const strange = names(prefix);
      const nc = await ground().connect();
      const jsm = await jetstreamManager(nc);
      await jsm.streams.add({
        name: strange.streams.tasks,
        subjects: [strange.allTasks],
        allow_direct: false,
      });
      await expect(
        ensureStreams({ nc, names: strange, config: ground().config, logger: silentLogger }),
      ).rejects.toMatchObject({
        code: 'stream_incompatible',
        details: {
          stream: strange.streams.tasks,
          setting: 'allow_direct',
          actual: 'false',
          expected: 'true',
        },
      });
      await jsm.streams.delete(strange.streams.tasks);
    });

    test('give a type one work consumer, whose lease follows the configuration', async () => {
      const { names: own, config } = ground();
      const connections = await Promise.all([ground().connect(), ground().connect(), ground().connect()]);
      await Promise.all(connections.map((nc) => ensureWorkConsumer({ nc, names: own, config }, 'transcode')));
      const [nc] = connections;
      if (nc === undefined) throw new Error('no connection');
      await ensureWorkConsumer({ nc, names: own, config: { ackWaitMs: 7_000 } }, 'transcode');
      const jsm = await jetstreamManager(nc);
      const consumer = await jsm.consumers.info(own.streams.tasks, own.workConsumer('transcode'));
      expect(consumer.config).toMatchObject({
        ack_wait: nanos(7_000),
        max_deliver: -1,
        max_ack_pending: -1,
        filter_subject: own.work('transcode'),
      });
    });
  });
}
