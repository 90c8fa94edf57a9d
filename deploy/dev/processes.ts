import { chooseDemo } from '../../src/demo/settings.ts';
import type { ChildSpec } from './children.ts';
import type { Greeting } from './greeting.ts';

export interface Processes {
  /** The program itself: started first, stopped last. */
  readonly program: readonly ChildSpec[];
  /** Workers, and traffic for them. */
  readonly demo: readonly ChildSpec[];
  readonly note: Greeting['note'];
}

/** The demo's name for `--demo` when none is wanted. */
const NO_DEMO = 'none';
/** More than one, so that killing one shows how another takes over. */
const WORKERS = 2;

/**
 * The Node processes of `npm start`.
 * @throws TaskledgerError `config_invalid` for an unknown demo, or one that this machine cannot run
 */
export async function processesOf(options: {
  demo: string | undefined;
  dataDir: string;
}): Promise<Processes> {
  const program = [node('taskledger', 'src/main.ts', 'all')];
  if (options.demo === NO_DEMO) {
    const note = {
      text: 'No demo runs: tasks wait for workers of your own.',
      sample: { type: 'hello', payload: {} },
    };
    return { program, demo: [], note };
  }
  const { name, text, sample } = await chooseDemo(options.demo);
  const args = ['--demo', name, '--data', options.dataDir];
  const workers = Array.from({ length: WORKERS }, (_, index) =>
    node(`worker ${index + 1}`, 'src/demo/worker.ts', ...args),
  );
  return {
    program,
    demo: [...workers, node('traffic', 'src/demo/traffic.ts', ...args)],
    note: { text, sample },
  };
}

const node = (name: string, file: string, ...args: string[]): ChildSpec => ({
  name,
  args: ['--import', 'tsx', file, ...args],
  env: {},
});
