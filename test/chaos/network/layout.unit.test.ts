import { expect, test } from 'vitest';
import { freeSubnet, leftovers, namespaceOf, uplinkOf } from './layout.ts';

const owner = { pid: 4_194_304, word: 'beef' };

test('the name of the largest pid fits where the kernel takes 15 characters', () => {
  expect(uplinkOf(owner).length).toBeLessThanOrEqual(15);
});

test('only namespaces of chaos runs whose process is gone are swept', () => {
  const mine = namespaceOf({ pid: 7, word: 'a1b2' }, 'worker-1');
  const dead = namespaceOf({ pid: 8, word: 'a1b2' }, 'worker-1');
  const strangers = ['tlchaos', 'tlchaos-x-1', 'my-tlchaos-8-a1b2-n1', 'cni-8', '8'];
  expect(leftovers([mine, dead, ...strangers], (pid) => pid === 7)).toEqual([dead]);
});

test('a subnet is free when no route of the machine meets it', () => {
  const of = (...routes: string[]) => freeSubnet(routes, 5)?.cidr;
  expect(of('default', '192.0.2.0/24', '127.0.0.0/8')).toBe('10.231.5.0/24');
  expect(of('10.231.5.0/24')).toBe('10.231.6.0/24');
  expect(of('10.231.5.77')).toBe('10.231.6.0/24');
  expect(of('10.231.4.0/22')).toBe('10.231.8.0/24');
  expect(of('10.0.0.0/8')).toBe('172.29.5.0/24');
  expect(of('10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '198.18.0.0/15')).toBeUndefined();
});

test('runs that begin with different places get different subnets, also at the end of a range', () => {
  expect(freeSubnet([], 255)?.cidr).toBe('10.231.255.0/24');
  expect(freeSubnet([], 256)?.cidr).toBe('10.231.0.0/24');
  expect(freeSubnet(['10.231.255.0/24'], 255)?.cidr).toBe('10.231.0.0/24');
});

test('no two addresses of a stand are the same, and all are hosts of its subnet', () => {
  const subnet = freeSubnet([], 0);
  const parts = Array.from({ length: 110 }, (_, index) => subnet?.part(index));
  const all = [subnet?.router, subnet?.clients, ...parts.flatMap((part) => [part?.ways, part?.harness])];
  expect(new Set(all).size).toBe(2 + 2 * 110);
  for (const address of all) {
    const last = Number(/^10\.231\.0\.(\d+)$/.exec(address ?? '')?.[1]);
    expect(last).toBeGreaterThan(0);
    expect(last).toBeLessThan(255);
  }
  expect(() => subnet?.part(110)).toThrow('at most 110 parts');
});
