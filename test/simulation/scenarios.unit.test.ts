import { expect, it } from 'vitest';
import { scenarios } from './scenarios.ts';

const run = (name: string, scale: number): Readonly<Record<string, number>> => {
  const scenario = scenarios[name];
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  return scenario(scale);
};

it.each(['equal-weights', 'weights-3-to-1'])('%s: shares hold within 5 % over any 1 000 starts', (name) => {
  const figures = run(name, 0.2);
  expect(figures['worst deviation of a, %']).toBeLessThanOrEqual(5);
  expect(figures['worst deviation of b, %']).toBeLessThanOrEqual(5);
});

it('a tenant beside a noisy one needs at most 2.5 times what it needs alone at half the workers', () => {
  expect(run('noisy-neighbour', 0.1)['ratio']).toBeLessThanOrEqual(2.5);
});

it('class 4 is late under a permanent load of better classes, within its bound', () => {
  const figures = run('ageing', 0.1);
  expect(figures['starts between two of class 4, at most']).toBeLessThanOrEqual(figures['bound'] ?? 0);
});

it('every one of many tenants starts something before anybody starts a third time', () => {
  const figures = run('many-tenants', 0.02);
  expect(figures['starts']).toBe(20_000);
  expect(figures["first starts after anybody's third"]).toBe(0);
});

it('no limit of concurrency is ever exceeded', () => {
  expect(run('limits', 0.1)).toEqual({ starts: 2_000, 'above the limit, at most': 0 });
});

it('tasks of an ordering key run one at a time, in the order of submission', () => {
  expect(run('ordering-keys', 0.1)).toEqual({
    starts: 2_000,
    'of one key at a time, at most': 1,
    'out of order': 0,
  });
});
