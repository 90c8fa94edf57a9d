import type { ChildSpec } from './children.ts';
import type { Greeting } from './greeting.ts';

export interface Processes {
  /** The program itself: started first, stopped last. */
  readonly program: readonly ChildSpec[];
  /** Workers and a submitter that make it do something. */
  readonly demo: readonly ChildSpec[];
  readonly note: Greeting['note'];
}

/** The Node processes of `npm start`. */
export async function processesOf(_options: {
  demo: string | undefined;
  dataDir: string;
}): Promise<Processes> {
  return {
    program: [{ name: 'taskledger', args: ['--import', 'tsx', 'src/main.ts', 'all'], env: {} }],
    demo: [],
    note: { text: 'No demo yet.', type: 'demo', payload: {} },
  };
}
