import type { Logger } from '../../src/observe/log.ts';
import type { LogInspector, LogState } from './log-state.ts';
import type { StretchPlan } from './stretch.ts';

/**
 * Where to read on: TASKS; HISTORY for what the hot window no longer has. What both have is read from TASKS, because it
 * knows when an event was stored, from which retries are due.
 */
export async function planStretch(
  { inspector, logger }: { inspector: LogInspector; logger: Logger },
  log: LogState,
  fromSeq: number,
): Promise<StretchPlan> {
  if (fromSeq >= log.firstSeq) return { stream: 'tasks', fromSeq };
  const historyEnd = await inspector.historyEnd();
  const facts = { alarm: 'hot_window', position: fromSeq - 1, firstSeq: log.firstSeq, historyEnd };
  if (historyEnd >= fromSeq) {
    logger.warn(facts, 'the hot window has moved on; reading HISTORY');
    const historyFrom = await inspector.historySeqOf(fromSeq);
    return { stream: 'history', fromSeq, historyFrom, untilSeq: Math.min(historyEnd, log.firstSeq - 1) };
  }
  logger.error(facts, 'events are gone from TASKS and HISTORY; going on without them');
  return { stream: 'tasks', fromSeq: log.firstSeq };
}
