import type { Command } from 'commander';
import type { BackedUpStream } from '../backup/manifest.ts';
import { loadConfig } from '../platform/config.ts';
import { EXIT, type Run, type Terminal } from './terminal.ts';

/** Backup and restore talk to NATS itself: when they are needed there may be no API. Its settings are the server's own. */
export function addBackupCommand(program: Command, terminal: Terminal, run: Run): void {
  program
    .command('backup')
    .description('Write the streams to a folder; the installation may be at work')
    .argument('<dir>', 'an empty or new folder')
    .option('--nats <url>', 'NATS servers (NATS_URL)')
    .action((dir: string, options: { nats?: string }) =>
      run(async () => {
        const parts = await connection(terminal, options);
        const { backUp } = await import('../backup/backup.ts');
        const manifest = await closing(parts, () =>
          backUp({ ...parts, dir, now: terminal.clock.now(), onStream: reporting(terminal) }),
        );
        terminal.out(`${manifest.streams.length} streams in ${dir}\n`);
        return EXIT.ok;
      }),
    );
}

/** To the servers of the installation. */
export async function connection(terminal: Terminal, { nats }: { nats?: string }) {
  const { connectNats } = await import('../platform/nats.ts');
  const { names } = await import('../log/subjects.ts');
  const config = loadConfig({ ...terminal.env, ...(nats === undefined ? {} : { NATS_URL: nats }) });
  const nc = await connectNats(config, 'taskledger backup');
  return { nc, names: names(config.prefix), config };
}

export async function closing<T>(
  { nc }: { nc: { close(): Promise<void> } },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } finally {
    await nc.close();
  }
}

export const reporting =
  (terminal: Terminal) =>
  ({ name, messages, bytes }: BackedUpStream): void =>
    terminal.err(`${name}: ${messages} messages, ${bytes} bytes\n`);
