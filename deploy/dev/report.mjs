import { readFileSync } from 'node:fs';

// What `npm test` says last.

/** Vitest's JSON report; `undefined` when it was not written or is no JSON. */
export function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * The problems beside failed tests, what was left out and why, the closing line and the exit code. Every failed step
 * counts as one failure, and so does a test that was left out without a word; `selective`: the run was asked for some
 * tests only, so that the others need no reason.
 */
export function closing({ report, vitestCode, failedChecks, selective = false }) {
  const { passed, failed } = countsOf(report);
  const skipped = skippedOf(report);
  const problems = failedChecks.map((name) => `${name} failed`);
  if (passed + failed === 0) problems.push('no test ran');
  else if (vitestCode !== 0 && failed === 0) problems.push('vitest failed outside of the tests: see above');
  if (!selective)
    for (const { name, needs } of skipped)
      if (needs === undefined) problems.push(`skipped without a word: ${name}`);
  const notes = skipped.flatMap(({ name, needs }) =>
    needs === undefined ? [] : [`skipped for want of ${needs}: ${name}`],
  );
  const failures = failed + problems.length;
  const line = `${passed} passed, ${failures} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}`;
  return { problems, notes, line, exitCode: failures > 0 ? 1 : 0 };
}

/** A file that could not be loaded, or whose hooks failed, has no failed test to count: it is one failure. */
function countsOf(report) {
  if (report === undefined) return { passed: 0, failed: 0 };
  const broken = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  );
  return { passed: report.numPassedTests, failed: report.numFailedTests + broken.length };
}

/** A test that may be left out says in its `meta.needs` what it needs of the machine. */
function skippedOf(report) {
  const tests = (report?.testResults ?? []).flatMap(({ assertionResults }) => assertionResults);
  return tests
    .filter(({ status }) => status === 'skipped' || status === 'pending' || status === 'todo')
    .map(({ fullName, meta }) => ({ name: fullName.trim(), needs: meta?.needs }));
}
