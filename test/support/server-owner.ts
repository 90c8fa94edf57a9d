/**
 * A process that starts a nats-server and a Postgres below the folder in its argument, prints their pids as one line of
 * JSON and waits: for tests of what becomes of servers whose owner dies.
 */
import { join } from 'node:path';
import { startNatsServer } from '../../src/platform/embedded/nats-process.ts';
import { startPostgres } from '../../src/platform/embedded/postgres-process.ts';
import { findTestNatsServer } from './local-backend.ts';

const [dir] = process.argv.slice(2);
if (dir === undefined) throw new Error('the folder for the data is missing');
const log = (line: string): void => console.error(line);
const { bin } = await findTestNatsServer(log);
const nats = await startNatsServer({ bin, dir: join(dir, 'nats'), log });
const postgres = await startPostgres({ dir: join(dir, 'postgres'), settings: { fsync: 'off' }, log });
process.on('SIGINT', () => console.error('SIGINT'));
console.log(JSON.stringify({ nats: nats.pid, natsUrl: nats.url, postgres: postgres.pid }));
