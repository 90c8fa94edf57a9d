import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

const cores = availableParallelism();

/** Suites are told apart by what they cost: unit needs no server; contract, int and e2e share one NATS and one Postgres a run. */
const withServers = {
  globalSetup: ['test/support/global-setup.ts'],
  // More than the longest patience of what a test waits for: that one says what it was.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  pool: 'forks' as const,
};

/** After unit, in one group. Its files wait more than they compute: two at a time keep two cores busy; more than four ask much of the servers that they share. */
const sideBySide = { maxWorkers: Math.max(2, Math.min(cores - 1, 4)), sequence: { groupOrder: 1 } };

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
          maxWorkers: Math.max(2, cores - 1),
          // What one file leaves in its modules is nothing to the next, and loading them for each takes as long as the tests.
          isolate: false,
        },
      },
      {
        test: {
          name: 'contract',
          include: ['{src,projections,test}/**/*.contract.test.ts'],
          ...withServers,
          ...sideBySide,
        },
      },
      {
        test: {
          name: 'int',
          include: ['{src,projections,test}/**/*.int.test.ts'],
          ...withServers,
          ...sideBySide,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.e2e.test.ts'],
          ...withServers,
          ...sideBySide,
          testTimeout: 240_000,
        },
      },
      {
        test: {
          name: 'chaos',
          include: ['test/chaos/**/*.chaos.test.ts'],
          ...withServers,
          ...sideBySide,
          testTimeout: 240_000,
        },
      },
    ],
  },
});
