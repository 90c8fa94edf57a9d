import { createDispatcher } from '../dispatch/dispatcher.ts';
import { dispatcherReadings } from '../dispatch/readings.ts';
import { type Service, serviceGroup } from '../platform/service.ts';
import { createRetentionWatch } from '../retention/watch.ts';
import { createScheduler } from '../schedules/scheduler.ts';
import type { Parts } from './parts.ts';

/** What decides, without Postgres: which task is queued next, which slot is due, and whether the log keeps what is needed. */
export function dispatcherRole(parts: Parts): Service {
  const { told } = parts;
  const dispatcher = createDispatcher(parts);
  told.readings.push(() => dispatcherReadings(dispatcher.stats()));
  told.checks['dispatcher'] = () => ({ ok: true, detail: dispatcher.isLeader() ? 'leads' : 'stands by' });
  const watch = createRetentionWatch(parts);
  told.readings.push(() => watch.readings());
  return serviceGroup('dispatcher', [dispatcher, createScheduler(parts), watch]);
}
