import type { Backend } from './backend.ts';

const DEFAULT_NATS_IMAGE = 'nats:2.15';
const DEFAULT_POSTGRES_IMAGE = 'postgres:18';
const START_TIMEOUT_MS = 120_000;
const CREDENTIALS = { user: 'taskledger', password: 'taskledger' };

/** One NATS and one Postgres in containers; the images can be named by TEST_NATS_IMAGE and TEST_POSTGRES_IMAGE. */
export async function startContainerBackend(log: (line: string) => void): Promise<Backend> {
  const { TEST_NATS_IMAGE, TEST_POSTGRES_IMAGE } = process.env;
  const natsImage = TEST_NATS_IMAGE || DEFAULT_NATS_IMAGE;
  const postgresImage = TEST_POSTGRES_IMAGE || DEFAULT_POSTGRES_IMAGE;
  // Loaded only here: testcontainers looks for an engine as soon as it is used, and takes a second to load.
  const { GenericContainer, Wait } = await import('testcontainers');
  const nats = await new GenericContainer(natsImage)
    .withCommand(['-js'])
    .withExposedPorts(4222)
    .withWaitStrategy(Wait.forLogMessage('Server is ready'))
    .withStartupTimeout(START_TIMEOUT_MS)
    .start();
  try {
    const postgres = await new GenericContainer(postgresImage)
      .withEnvironment({ POSTGRES_USER: CREDENTIALS.user, POSTGRES_PASSWORD: CREDENTIALS.password })
      .withCommand(['postgres', '-c', 'fsync=off', '-c', 'max_connections=400'])
      .withExposedPorts(5432)
      // The image starts the server twice: once to initialise, once for good.
      .withWaitStrategy(Wait.forLogMessage('database system is ready to accept connections', 2))
      .withStartupTimeout(START_TIMEOUT_MS)
      .start();
    log(`backend: containers, ${natsImage} and ${postgresImage}`);
    const { user, password } = CREDENTIALS;
    return {
      natsUrl: `nats://${nats.getHost()}:${nats.getMappedPort(4222)}`,
      databaseUrl: `postgres://${user}:${password}@${postgres.getHost()}:${postgres.getMappedPort(5432)}/${user}`,
      stop: async () => void (await Promise.all([nats.stop(), postgres.stop()])),
    };
  } catch (error) {
    await nats.stop();
    throw error;
  }
}
