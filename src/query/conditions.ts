/** Conditions with the values of their parameters. `first`: values of parameters that the statement has before them. */
export class Conditions {
  readonly texts: string[] = [];
  readonly values: unknown[];

  constructor(first: readonly unknown[] = []) {
    this.values = [...first];
  }

  /** What is undefined asks for nothing. */
  require(condition: (parameter: string) => string, value: unknown): void {
    if (value !== undefined) this.texts.push(condition(this.parameter(value)));
  }

  parameter(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
}

export const whereText = (conditions: readonly string[]): string =>
  conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`;
