import type { Command } from 'commander';
import type { Json } from '../domain/json.ts';
import type { Terminal } from './terminal.ts';

/** A payload as an argument: JSON; `@file` reads a file, `-` reads standard input. What cannot be read is a mistake in usage. */
export async function readPayload(
  text: string | undefined,
  terminal: Terminal,
  command: Command,
): Promise<Json> {
  if (text === undefined) return null;
  const source =
    text === '-' ? await terminal.stdin() : text.startsWith('@') ? await file(text.slice(1)) : text;
  try {
    return JSON.parse(source) as Json;
  } catch (error) {
    command.error(`error: the payload is not JSON: ${(error as Error).message}`, {
      code: 'taskledger.payload',
    });
  }

  async function file(path: string): Promise<string> {
    try {
      return await terminal.readFile(path);
    } catch (error) {
      command.error(`error: ${(error as Error).message}`, { code: 'taskledger.payload' });
    }
  }
}
