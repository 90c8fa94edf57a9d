import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installDependencies, programOf, requireNode, run } from './install.mjs';

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
const counts = countsOf(reportFile);
rmSync(dir, { recursive: true, force: true });

const problems = failedChecks.map((name) => `${name} failed`);
if (counts.passed + counts.failed === 0) problems.push('no test ran');
else if (vitestCode !== 0 && counts.failed === 0)
  problems.push('vitest failed outside of the tests: see above');

console.log('');
for (const problem of problems) console.log(`✗ ${problem}`);
const failed = counts.failed + problems.length;
console.log(
  `${counts.passed} passed, ${failed} failed${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''}`,
);
process.exitCode = failed > 0 ? 1 : 0;

/** From vitest's own report. A file that could not be loaded has no tests to count: it is one failure. */
function countsOf(file) {
  let report;
  try {
    report = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { passed: 0, failed: 0, skipped: 0 };
  }
  const broken = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  );
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}
