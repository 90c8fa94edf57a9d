import { crc32 } from 'node:zlib';
import { z } from 'zod';
import { type CommandOf, CommandSchema } from '../../domain/commands.ts';
import { NameSchema, TaskIdSchema } from '../../domain/names.ts';

/**
 * A spool is a text file that is only appended to. Each line is the CRC-32 of its JSON, a space, and the JSON:
 *
 *   owner     who writes the file; the first line
 *   outcome   how an attempt ended, as the command that tells the log
 *   told      the log has answered about the outcome with this event id
 *
 * A line counts only when it is whole: the end of a write that a crash broke off is as if it had never been begun.
 */
const OwnerSchema = z.strictObject({
  kind: z.literal('owner'),
  v: z.literal(1),
  worker: z.string(),
  host: z.string(),
  pid: z.int(),
  /** As `describeProcess` says it: tells a process from a later one with the same pid. */
  startedAt: z.string(),
  /** Whose log the outcomes are of: see `installationOf`. A spool of an earlier release does not say. */
  installation: z.string().optional(),
});
const SETTLING = ['complete', 'fail', 'cancel', 'lose'] as const;
/** What tells the log how an attempt ended. */
export type SettleCommand = CommandOf<(typeof SETTLING)[number]>;
const SettleCommandSchema = CommandSchema.transform((command, context): SettleCommand => {
  if (SETTLING.some((kind) => kind === command.kind)) return command as SettleCommand;
  context.addIssue({ code: 'custom', message: `${command.kind} ends no attempt` });
  return z.NEVER;
});
const OutcomeSchema = z.strictObject({
  kind: z.literal('outcome'),
  tenant: NameSchema,
  taskId: TaskIdSchema,
  command: SettleCommandSchema,
});
const ToldSchema = z.strictObject({ kind: z.literal('told'), eventId: TaskIdSchema });
const LineSchema = z.discriminatedUnion('kind', [OwnerSchema, OutcomeSchema, ToldSchema]);

export type SpoolOwner = Omit<z.infer<typeof OwnerSchema>, 'kind' | 'v'>;
export interface SpooledOutcome {
  readonly tenant: string;
  readonly taskId: string;
  readonly command: SettleCommand;
}

export interface SpoolContent {
  /** Undefined when the first line is damaged. */
  readonly owner: SpoolOwner | undefined;
  /** In the order in which they were written. */
  readonly untold: readonly SpooledOutcome[];
  /** Lines that are not whole, but for a last one that was never finished. */
  readonly damaged: number;
}

export const ownerLine = (owner: SpoolOwner): string => encodeLine({ kind: 'owner', v: 1, ...owner });
export const outcomeLine = (outcome: SpooledOutcome): string => encodeLine({ kind: 'outcome', ...outcome });
export const toldLine = (eventId: string): string => encodeLine({ kind: 'told', eventId });

export function readSpool(text: string): SpoolContent {
  let owner: SpoolOwner | undefined;
  let damaged = 0;
  const untold = new Map<string, SpooledOutcome>();
  const lines = text.split('\n');
  const last = lines.length - 1;
  lines.forEach((line, index) => {
    if (line === '') return;
    const read = decodeLine(line);
    switch (read?.kind) {
      case undefined:
        if (index !== last) damaged += 1;
        break;
      case 'owner': {
        const { kind: _kind, v: _v, ...rest } = read;
        owner = rest;
        break;
      }
      case 'outcome': {
        const { tenant, taskId, command } = read;
        untold.set(command.eventId, { tenant, taskId, command });
        break;
      }
      case 'told':
        untold.delete(read.eventId);
        break;
      default:
        read satisfies never;
    }
  });
  return { owner, untold: [...untold.values()], damaged };
}

function encodeLine(line: z.infer<typeof LineSchema>): string {
  const json = JSON.stringify(line);
  return `${checksum(json)} ${json}\n`;
}

function decodeLine(line: string): z.infer<typeof LineSchema> | undefined {
  const json = line.slice(CHECKSUM_LENGTH + 1);
  if (line.slice(0, CHECKSUM_LENGTH) !== checksum(json)) return undefined;
  try {
    return LineSchema.safeParse(JSON.parse(json)).data;
  } catch {
    return undefined;
  }
}

const CHECKSUM_LENGTH = 8;
const checksum = (json: string): string => crc32(json).toString(16).padStart(CHECKSUM_LENGTH, '0');
