import { defineConfig } from 'vitest/config';

/** Suites are told apart by what they cost: unit needs no server; contract, int and e2e share one NATS and one Postgres a run. */
const withServers = {
  globalSetup: ['test/support/global-setup.ts'],
  testTimeout: 60_000,
  hookTimeout: 120_000,
  pool: 'forks' as const,
};

export default defineConfig({
  test: {
    reporters: ['default'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{src,projections,test,deploy}/**/*.unit.test.ts'],
          // Properties over long histories, on machines that others use too.
          testTimeout: 60_000,
        },
      },
      {
        test: { name: 'contract', include: ['{src,projections,test}/**/*.contract.test.ts'], ...withServers },
      },
      { test: { name: 'int', include: ['{src,projections,test}/**/*.int.test.ts'], ...withServers } },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.e2e.test.ts'],
          ...withServers,
          fileParallelism: false,
          testTimeout: 240_000,
        },
      },
      {
        test: {
          name: 'chaos',
          include: ['test/chaos/**/*.chaos.test.ts'],
          ...withServers,
          fileParallelism: false,
          testTimeout: 240_000,
        },
      },
    ],
  },
});
