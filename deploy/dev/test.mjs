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
  { name: 'unused files, exports and dependencies', program: 'knip', args: ['--no-progress'] },
];

const startedAt = performance.now();
const seconds = (since) => `${Math.round((performance.now() - since) / 1_000)} s`;

const failedChecks = [];
for (const { name, program, args } of checks) {
  const since = performance.now();
  console.log(`\n▸ ${name}`);
  const ok = (await run(programOf(program), args)) === 0;
  console.log(`${ok ? '✓' : '✗'} ${name}, ${seconds(since)}`);
  if (!ok) failedChecks.push(name);
}

console.log('\n▸ tests');
const vitestArgs = process.argv.slice(2);
const selective = vitestArgs.some((arg) => /^(-t|--testNamePattern|--tagsFilter)/i.test(arg));
const dir = mkdtempSync(join(tmpdir(), 'taskledger-report-'));
const reportFile = join(dir, 'report.json');
const vitestCode = await run(programOf('vitest'), [
  'run',
  '--reporter=default',
  '--reporter=json',
  `--outputFile.json=${reportFile}`,
  ...vitestArgs,
]);
const report = readReport(reportFile);
const { problems, notes, line, exitCode } = closing({ report, vitestCode, failedChecks, selective });
rmSync(dir, { recursive: true, force: true });
console.log(`\nAll of it took ${seconds(startedAt)}.`);
for (const note of notes) console.log(`↓ ${note}`);
for (const problem of problems) console.log(`✗ ${problem}`);
console.log(line);
process.exitCode = exitCode;
