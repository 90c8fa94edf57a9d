/** The part of vitest's JSON report that is counted. */
export interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly status: string;
    readonly assertionResults: readonly ReportedTest[];
  }[];
}

export interface ReportedTest {
  readonly fullName: string;
  readonly status: string;
  readonly meta?: { readonly needs?: string };
}

export function readReport(file: string): Report | undefined;

export function closing(run: {
  readonly report: Report | undefined;
  readonly vitestCode: number;
  readonly failedChecks: readonly string[];
  readonly selective?: boolean;
}): {
  readonly problems: readonly string[];
  readonly notes: readonly string[];
  readonly line: string;
  readonly exitCode: 0 | 1;
};
