import { expect, test } from 'vitest';
import { laneText, portText, rulesText, type WayFault } from './rules.ts';

const way = { near: '10.0.0.1', far: ['10.0.0.2', '10.0.0.3'], lane: 18 };
const OUT = 'ip saddr 10.0.0.1 ip daddr { 10.0.0.2, 10.0.0.3 }';
const BACK = 'ip saddr { 10.0.0.2, 10.0.0.3 } ip daddr 10.0.0.1';

const rules = (...faults: WayFault[]): string[] =>
  rulesText(faults.map((fault) => ({ way, fault })))
    .split('\n')
    .filter((line) => line.startsWith('add rule'))
    .map((line) => line.replace('add rule inet chaos ways ', ''));

test.each([
  [
    'cut',
    [`${OUT} meta l4proto tcp reject with tcp reset`, `${BACK} meta l4proto tcp reject with tcp reset`],
  ],
  ['blackhole', [`${OUT} drop`, `${BACK} drop`]],
  ['mute', [`${OUT} drop`]],
  ['deaf', [`${BACK} drop`]],
  ['slow', [`${OUT} meta priority set 1:12`, `${BACK} meta priority set 1:12`]],
] as const)('a way that is %s has rules for its own two ends alone', (fault, expected) => {
  expect(rules(fault)).toEqual(expected);
});

test('every change replaces all rules in one transaction, and without a fault there is none', () => {
  expect(rulesText([])).toBe(
    [
      'add table inet chaos',
      'add chain inet chaos ways { type filter hook forward priority 0; policy accept; }',
      'flush chain inet chaos ways',
      '',
    ].join('\n'),
  );
  expect(rules('mute', 'deaf')).toEqual([`${OUT} drop`, `${BACK} drop`]);
});

test('a slow way has a lane at both ends, where a full packet takes as long as was asked', () => {
  const lane = (brake: 'netem' | 'tbf') =>
    laneText({ ports: ['worker-1', 'n1'], lane: 18, brake, delayMs: 100 }).split('\n');
  expect(portText('n1')).toBe('qdisc replace dev n1 root handle 1: htb default 0\n');
  expect(lane('netem')).toEqual([
    'class replace dev worker-1 parent 1: classid 1:12 htb rate 1gbit quantum 60000',
    'qdisc replace dev worker-1 parent 1:12 netem delay 100ms limit 10000',
    'class replace dev n1 parent 1: classid 1:12 htb rate 1gbit quantum 60000',
    'qdisc replace dev n1 parent 1:12 netem delay 100ms limit 10000',
    '',
  ]);
  // 1500 bytes at 120 000 bits a second: 0.1 s.
  expect(lane('tbf')[1]).toBe(
    'qdisc replace dev worker-1 parent 1:12 tbf rate 120000bit burst 1600 latency 2000ms',
  );
});
