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

/** The problems beside failed tests, the closing line and the exit code. Every failed step counts as one failure. */
export function closing({ report, vitestCode, failedChecks }) {
  const { passed, failed, skipped } = countsOf(report);
  const problems = failedChecks.map((name) => `${name} failed`);
  if (passed + failed === 0) problems.push('no test ran');
  else if (vitestCode !== 0 && failed === 0) problems.push('vitest failed outside of the tests: see above');
  const failures = failed + problems.length;
  const line = `${passed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  return { problems, line, exitCode: failures > 0 ? 1 : 0 };
}

/** A file that could not be loaded, or whose hooks failed, has no failed test to count: it is one failure. */
function countsOf(report) {
  if (report === undefined) return { passed: 0, failed: 0, skipped: 0 };
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
