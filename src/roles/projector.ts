import { createProjector, type Projector } from '../../projections/engine/projector.ts';
import { projectorReadings } from '../../projections/engine/readings.ts';
import { createRebuilder } from '../../projections/engine/rebuild/rebuilder.ts';
import { standingOf } from '../../projections/engine/standing.ts';
import { whenMigrated } from '../../projections/engine/when-migrated.ts';
import { projections } from '../../projections/projections.ts';
import { unfinishedTasks } from '../../projections/tasks/unfinished.ts';
import { migrate } from '../platform/migrate.ts';
import { createPool } from '../platform/postgres.ts';
import { type Service, serviceGroup } from '../platform/service.ts';
import { createNeedsReporter } from '../retention/needs-reporter.ts';
import type { Parts } from './parts.ts';
import { poolOf } from './pool.ts';

/** Building an index or comparing a table of many millions of rows. */
const LONG_WORK_MS = 4 * 3_600_000;

/** What writes to Postgres: the read models as events come, rebuilds beside them, and what of the log they still need. */
export function projectorRole({ config, nc, names, logger, clock, told }: Parts): Service {
  const common = { nc, names, config, clock, logger };
  const pool = createPool(
    { ...config, databaseTimeoutMs: config.projectorTimeoutMs, databasePoolSize: 1 },
    'taskledger projector',
  );
  const longPool = createPool({ ...config, databaseTimeoutMs: LONG_WORK_MS }, 'taskledger rebuilder');
  const projector = createProjector({
    ...common,
    pool,
    projections: projections(config),
    migrate: () => migrate(config.databaseUrl, { logger }),
  });
  const rebuilder = createRebuilder({ ...common, pool: longPool, projections: () => projections(config) });
  const needs = createNeedsReporter({
    ...common,
    position: () => positionOf(projector),
    unfinished: () => unfinishedTasks(longPool),
  });
  const writers = whenMigrated(serviceGroup('projector', [projector, rebuilder, needs]), { config, logger });
  told.readings.push(() => projectorReadings(projector.stats()));
  told.checks['projector'] = () => standingOf(projector.stats(), writers.waitsFor());
  return serviceGroup('projector', [poolOf(pool), poolOf(longPool), writers]);
}

/** How far all read models have come; undefined while another process writes them. */
function positionOf(projector: Projector): number | undefined {
  const { mode, positions } = projector.stats();
  return mode === 'leading' ? Math.min(...Object.values(positions)) : undefined;
}
