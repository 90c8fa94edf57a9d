import { jetstreamManager } from '@nats-io/jetstream';
import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { connectTestNats, createTestDatabase, testNamespace } from '../support/servers.ts';

const database = await createTestDatabase(import.meta.url);
afterAll(database.drop);

test('a test file has a database of its own', async () => {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const { rows } = await client.query('select current_database() as name');
  await client.end();
  expect(rows).toEqual([{ name: database.name }]);
});

test('a test file has a stream prefix of its own on a server with JetStream', async () => {
  const prefix = testNamespace(import.meta.url);
  expect(prefix).toMatch(/^[a-z0-9]+_$/);
  expect(testNamespace(import.meta.url)).toBe(prefix);
  expect(testNamespace(`${import.meta.url}x`)).not.toBe(prefix);

  const connection = await connectTestNats();
  const jsm = await jetstreamManager(connection);
  const info = await jsm.streams.add({ name: `${prefix}S`, subjects: [`${prefix}s.>`] });
  expect(info.config.num_replicas).toBe(1);
  await jsm.streams.delete(`${prefix}S`);
  await connection.close();
});
