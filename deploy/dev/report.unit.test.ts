import { expect, test } from 'vitest';
import { closing, type Report, type ReportedTest, readReport } from './report.mjs';

const report = (counts: Partial<Report> = {}): Report => ({
  numPassedTests: 3,
  numFailedTests: 0,
  testResults: [],
  ...counts,
});

const withTests = (...tests: Partial<ReportedTest>[]): Report =>
  report({
    testResults: [
      {
        status: 'passed',
        assertionResults: tests.map((each) => ({ fullName: 'works', status: 'passed', ...each })),
      },
    ],
  });

test('a clean run closes with the number of passed tests and no failure', () => {
  expect(closing({ report: report(), vitestCode: 0, failedChecks: [] })).toEqual({
    problems: [],
    notes: [],
    line: '3 passed, 0 failed',
    exitCode: 0,
  });
});

test('a test that says what it needs may be left out, and that is told', () => {
  const spoken = withTests({}, { fullName: 'fills a disk', status: 'skipped', meta: { needs: 'root' } });
  expect(closing({ report: spoken, vitestCode: 0, failedChecks: [] })).toEqual({
    problems: [],
    notes: ['skipped for want of root: fills a disk'],
    line: '3 passed, 0 failed, 1 skipped',
    exitCode: 0,
  });
});

test('a test that is left out without a word is a failure, unless some tests only were asked for', () => {
  const silent = withTests({ status: 'skipped' }, { fullName: 'is yet to be written', status: 'todo' });
  expect(closing({ report: silent, vitestCode: 0, failedChecks: [] })).toEqual({
    problems: ['skipped without a word: works', 'skipped without a word: is yet to be written'],
    notes: [],
    line: '3 passed, 2 failed, 2 skipped',
    exitCode: 1,
  });
  const asked = closing({ report: silent, vitestCode: 0, failedChecks: [], selective: true });
  expect(asked).toMatchObject({ problems: [], exitCode: 0 });
});

test('a failed check counts as a failure although every test passed', () => {
  expect(closing({ report: report(), vitestCode: 0, failedChecks: ['types', 'lint'] })).toEqual({
    problems: ['types failed', 'lint failed'],
    notes: [],
    line: '3 passed, 2 failed',
    exitCode: 1,
  });
});

test('a file that could not be loaded counts as one failure', () => {
  const testResults = [
    { status: 'failed', assertionResults: [] },
    { status: 'failed', assertionResults: [{ fullName: 'works', status: 'failed' }] },
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
  expect(none).toEqual({ problems: ['no test ran'], notes: [], line: '0 passed, 1 failed', exitCode: 1 });
  const missing = closing({ report: readReport('/nonexistent'), vitestCode: 1, failedChecks: [] });
  expect(missing.exitCode).toBe(1);
  const unhandled = closing({ report: report(), vitestCode: 1, failedChecks: [] });
  expect(unhandled.problems).toEqual(['vitest failed outside of the tests: see above']);
});
