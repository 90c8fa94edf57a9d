import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installDependencies, programOf, requireNode, run, runAside } from './install.mjs';
import { closing, readReport } from './report.mjs';

// `npm test`: everything that the CI runs. Arguments go to vitest: `npm test -- --project unit`.

requireNode();
installDependencies();

/** Side by side: the compiler takes one core for as long as all others together. */
const lanes = [
  [{ name: 'types', program: 'tsc', args: ['--noEmit'] }],
  [
    { name: 'format and lint (biome)', program: 'biome', args: ['check', '.'] },
    { name: 'lint (oxlint)', program: 'oxlint', args: ['--type-aware', '--deny-warnings'] },
    {
      name: 'import boundaries',
      program: 'depcruise',
      args: ['--config', '.dependency-cruiser.cjs', 'src', 'projections'],
    },
    { name: 'unused files, exports and dependencies', program: 'knip', args: ['--no-progress'] },
  ],
];

const startedAt = performance.now();
const seconds = (since) => `${Math.round((performance.now() - since) / 1_000)} s`;

const failedChecks = [];
async function runLane(checks) {
  for (const { name, program, args } of checks) {
    const since = performance.now();
    const { code, output } = await runAside(programOf(program), args);
    if (code !== 0) failedChecks.push(name);
    console.log(`\n▸ ${name}\n${output}${code === 0 ? '✓' : '✗'} ${name}, ${seconds(since)}`);
  }
}
await Promise.all(lanes.map(runLane));

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
