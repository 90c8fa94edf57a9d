import {
  AuthorizationError,
  type NatsConnection,
  PermissionViolationError,
  UserAuthenticationExpiredError,
} from '@nats-io/transport-node';

interface WatchLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface NatsWatch {
  /** Why NATS does not answer, and for how long: one sentence. Undefined while it does. */
  trouble(): string | undefined;
}

/** What is forbidden is asked for again and again: said at most once in so long. */
const FORBIDDEN_EVERY_MS = 60_000;

/**
 * Says when the connection is lost, why it does not come back when a login is refused, and when it is there again: one
 * line each, whatever depends on it. Ends with the connection.
 */
export function watchNats(nc: NatsConnection, logger: WatchLogger): NatsWatch {
  let away: { readonly since: number; refusal: string | undefined } | undefined;
  let forbiddenAt = Number.NEGATIVE_INFINITY;

  const failed = (error: Error): void => {
    if (error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError) {
      if (away === undefined || away.refusal !== undefined) return;
      away.refusal = error.message;
      logger.error(
        { reason: error.message },
        'NATS refuses the login: check the credentials here and on the servers; trying again until it is taken',
      );
    } else if (error instanceof PermissionViolationError) {
      const now = performance.now();
      if (now - forbiddenAt < FORBIDDEN_EVERY_MS) return;
      forbiddenAt = now;
      logger.error(
        { operation: error.operation, subject: error.subject },
        'NATS forbids what this process needs: give its user the permission',
      );
    }
  };
  const watch = async (): Promise<void> => {
    for await (const status of nc.status()) {
      if (status.type === 'disconnect' && away === undefined) {
        away = { since: performance.now(), refusal: undefined };
        logger.warn({ server: status.server }, 'NATS is away: connecting again until it answers');
      } else if (status.type === 'reconnect' && away !== undefined) {
        const awayMs = Math.round(performance.now() - away.since);
        away = undefined;
        logger.info({ server: status.server, awayMs }, 'NATS answers again');
      } else if (status.type === 'error') failed(status.error);
    }
  };
  void watch();

  return {
    trouble() {
      if (nc.isClosed()) return 'the connection to NATS is closed';
      if (away === undefined) return undefined;
      const seconds = Math.round((performance.now() - away.since) / 1_000);
      const why = away.refusal === undefined ? '' : ` (${away.refusal})`;
      return `NATS has been away for ${seconds} s${why}; connecting again until it answers`;
    },
  };
}
