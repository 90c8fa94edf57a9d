import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installDependencies, programOf, requireNode, run } from './install.mjs';
import { closing, readReport } from './report.mjs';

// `npm test`: everything that the CI runs. Arguments go to vitest: `npm test -- --project unit`.

requireNode();
installDependencies();

const checks = [
  { name: 'types', program: 'tsc', args: ['--noEmit'] },
  { name: 'format and lint (biome)', program: 'biome', args: ['check', '.'] },
  { name: 'lint (oxlint)', program: 'oxlint', args: ['--type-aware', '--deny-warnings'] },
  {
    name: 'import boundaries',
    program: 'depcruise',
    args: ['--config', '.dependency-cruiser.cjs', 'src', 'projections'],
  },
];

const failedChecks = [];
for (const { name, program, args } of checks) {
  console.log(`\n▸ ${name}`);
  if ((await run(programOf(program), args)) !== 0) failedChecks.push(name);
}

console.log('\n▸ tests');
const dir = mkdtempSync(join(tmpdir(), 'taskledger-report-'));
const reportFile = join(dir, 'report.json');
const vitestCode = await run(programOf('vitest'), [
  'run',
  '--reporter=default',
  '--reporter=json',
  `--outputFile.json=${reportFile}`,
  ...process.argv.slice(2),
]);
const { problems, line, exitCode } = closing({ report: readReport(reportFile), vitestCode, failedChecks });
rmSync(dir, { recursive: true, force: true });
console.log('');
for (const problem of problems) console.log(`✗ ${problem}`);
console.log(line);
process.exitCode = exitCode;
