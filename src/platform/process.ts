import { TaskledgerError } from '../domain/errors.ts';
import type { Service } from './service.ts';

interface ProcessLogger {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface ProcessParts {
  /** Starts the service; gives up soon after the signal fires. */
  readonly start: (stopping: AbortSignal) => Promise<Service>;
  /** How long the service may take to stop. */
  readonly graceMs: number;
  readonly logger: ProcessLogger;
}

/** The same request twice: a terminal signals a whole group of processes, and a runner among them passes it on. */
const REPEATED_MS = 300;
/** Added to the number of a signal: the exit code of a process that it ended. */
const KILLED_BY = 128;
const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

/**
 * The life of a process that is one service. Moves:
 *
 *   starting -> running -> stopping -> ended    exit code 0
 *   starting -> ended                           1, with the error; 0 when it was told to stop
 *   stopping -> ended                           1 after `graceMs`, saying what it waited for
 *   stopping -> ended                           130 or 143 at once, at another SIGINT or SIGTERM
 */
export async function runProcess({ start, graceMs, logger }: ProcessParts): Promise<void> {
  const stopping = new AbortController();
  let askedAt = 0;
  let service: Service | undefined;

  const stop = async (): Promise<void> => {
    const impatient = setTimeout(() => {
      logger.error({ graceMs, waitsFor: service?.heldUpBy?.() ?? 'start' }, 'not stopped in time: ending');
      process.exit(1);
    }, graceMs);
    await starting.catch(() => undefined);
    await service?.stop();
    clearTimeout(impatient);
    logger.info({ ms: Math.round(performance.now() - askedAt) }, 'stopped');
    process.exit(0);
  };
  for (const [signal, number] of Object.entries(SIGNALS))
    process.on(signal, () => {
      if (!stopping.signal.aborted) {
        askedAt = performance.now();
        logger.info({ signal, graceMs }, 'stopping');
        stopping.abort();
        stop().catch(fail);
      } else if (performance.now() - askedAt > REPEATED_MS) {
        logger.error({ signal, waitsFor: service?.heldUpBy?.() ?? 'start' }, 'told again: ending at once');
        process.exit(KILLED_BY + number);
      }
    });

  const starting = start(stopping.signal).then((started) => {
    service = started;
  });
  try {
    await starting;
  } catch (error) {
    if (!stopping.signal.aborted) fail(error);
  }
}

/** Ends the process with what went wrong, and with what to do about it when that is known. */
export function fail(error: unknown): never {
  if (error instanceof TaskledgerError) console.error(`${error.code}: ${error.message}\n${error.fix}`);
  else console.error(error);
  process.exit(1);
}
