import type { ProjectionDesk } from '../../projections/engine/rebuild/desk.ts';
import type { Backlog } from '../intake/backlog.ts';
import type { Intake } from '../intake/intake.ts';
import type { SubmissionRates } from '../intake/rates/submission-rates.ts';
import type { Unserved } from '../intake/unserved.ts';
import type { EventLog, LogReader, ReaderOptions } from '../log/event-log.ts';
import type { Logger } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Operations } from '../operations/operations.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
import type { Query } from '../query/query.ts';
import type { Registry } from '../registry/registry.ts';
import type { Workers } from '../registry/workers.ts';
import type { StreamsDesk } from '../retention/desk.ts';
import type { Schedules } from '../schedules/schedules.ts';
import type { Health } from './health.ts';
import type { Fact } from './why.ts';

/** What the routes are made of. The server owns none of it: whoever passes it in starts and stops it. */
export interface HttpParts {
  readonly config: Config;
  readonly intake: Intake;
  readonly registry: Registry;
  readonly schedules: Schedules;
  readonly query: Query;
  readonly projections: ProjectionDesk;
  /** What is known of the streams' completeness. */
  readonly streams: Pick<StreamsDesk, 'report' | 'acceptFindings'>;
  readonly operations: Operations;
  readonly log: EventLog;
  /** A reader of the log for one client's feed. */
  readonly readLog: (options: ReaderOptions) => LogReader;
  readonly workers: Workers;
  /** Asks the leading dispatcher why a task is not running; undefined when none answers. */
  readonly explain: (tenant: string, taskId: string) => Promise<readonly Fact[] | undefined>;
  readonly health: Health;
  readonly backlog: Pick<Backlog, 'full' | 'fullTenant' | 'waiting' | 'fullDelayed' | 'delayed'>;
  readonly rates: Pick<SubmissionRates, 'closed'>;
  readonly unserved: Pick<Unserved, 'versionsOf'>;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly logger: Logger;
}
