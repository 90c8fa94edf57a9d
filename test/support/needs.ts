declare module 'vitest' {
  interface TaskMeta {
    /** What a test needs that not every machine has; without it, a test that is left out makes `npm test` fail. */
    needs?: string;
  }
}

/** Options of a test that is left out where what it needs is not there: `npm test` tells of it. */
export const needs = (what: string, isThere: boolean) => ({ skip: !isThere, meta: { needs: what } });
