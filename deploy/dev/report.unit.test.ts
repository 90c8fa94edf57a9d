import { expect, test } from 'vitest';
import { closing, type Report, readReport } from './report.mjs';

const report = (counts: Partial<Report> = {}): Report => ({
  numPassedTests: 3,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  testResults: [],
  ...counts,
});

test('a clean run closes with the number of passed tests and no failure', () => {
  expect(closing({ report: report(), vitestCode: 0, failedChecks: [] })).toEqual({
    problems: [],
    line: '3 passed, 0 failed',
    exitCode: 0,
  });
});

test('skipped tests are told, never hidden', () => {
  const { line } = closing({
    report: report({ numPendingTests: 2, numTodoTests: 1 }),
    vitestCode: 0,
    failedChecks: [],
  });
  expect(line).toBe('3 passed, 0 failed, 3 skipped');
});

test('a failed check counts as a failure although every test passed', () => {
  expect(closing({ report: report(), vitestCode: 0, failedChecks: ['types', 'lint'] })).toEqual({
    problems: ['types failed', 'lint failed'],
    line: '3 passed, 2 failed',
    exitCode: 1,
  });
});

test('a file that could not be loaded counts as one failure', () => {
  const testResults = [
    { status: 'failed', assertionResults: [] },
    { status: 'failed', assertionResults: [{ status: 'failed' }] },
  ];
  const { line, exitCode } = closing({
    report: report({ numFailedTests: 1, testResults }),
    vitestCode: 1,
    failedChecks: [],
  });
  expect(line).toBe('3 passed, 2 failed');
  expect(exitCode).toBe(1);
});

test('a run without tests, without a report or with an error outside of tests fails', () => {
  const none = closing({ report: report({ numPassedTests: 0 }), vitestCode: 0, failedChecks: [] });
  expect(none).toEqual({ problems: ['no test ran'], line: '0 passed, 1 failed', exitCode: 1 });
  const missing = closing({ report: readReport('/nonexistent'), vitestCode: 1, failedChecks: [] });
  expect(missing.exitCode).toBe(1);
  const unhandled = closing({ report: report(), vitestCode: 1, failedChecks: [] });
  expect(unhandled.problems).toEqual(['vitest failed outside of the tests: see above']);
});
