/**
 * A session of `npm start` with two stub processes instead of servers and program, in a process of its own: for tests
 * of how it stops. Arguments: the data folder, and JavaScript that both stubs run.
 */
import { join } from 'node:path';
import { startChildren } from '../../deploy/dev/children.ts';
import { lockFolder, runSession } from '../../deploy/dev/session.ts';

const [dir = '', script = ''] = process.argv.slice(2);
const print = (line: string): void => console.log(line);

process.exitCode = await runSession(async (session) => {
  await session.start(() => lockFolder(join(dir, 'session.json')));
  for (const name of ['first', 'second']) {
    const specs = [{ name, args: ['-e', script], env: process.env }];
    await session.start(async () =>
      startChildren({ cwd: dir, specs, print, colour: false, onGivenUp: session.fail }),
    );
  }
}, print);
