import { pino } from 'pino';
import type { Config } from '../platform/config.ts';

/** The structured logger that services are given. Its methods take fields first and a message second. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
}

export const createLogger = (config: Pick<Config, 'logLevel'>, fields: object = {}): Logger =>
  pino({ level: config.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime }).child(fields);

export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};
