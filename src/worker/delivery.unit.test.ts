import { expect, test } from 'vitest';
import { nak, parseAckSubject } from './delivery.ts';

const told = { deliveryCount: 2, seq: 1234, storedAt: 1_795_984_037_061 };

test('an ack subject tells the delivery count, the sequence and the time of storing', () => {
  expect(parseAckSubject('$JS.ACK.TASKS.work_transcode.2.1234.99.1795984037061136587.7')).toEqual(told);
});

test('the longer form with domain, account and token tells the same', () => {
  expect(
    parseAckSubject('$JS.ACK.hub.AbCdEf.TASKS.work_transcode.2.1234.99.1795984037061136587.7.tok'),
  ).toEqual(told);
  expect(parseAckSubject('$JS.ACK._.AbCdEf.TASKS.work_transcode.2.1234.99.1795984037061136587.7')).toEqual(
    told,
  );
});

test.each([[''], ['_INBOX.abc.1'], ['$JS.ACK.TASKS'], ['$JS.ACK.TASKS.work.x.y.z.1.2']])(
  'anything else is no ack subject: %s',
  (subject) => {
    expect(parseAckSubject(subject)).toBeUndefined();
  },
);

test('a delayed hand-back says its delay in nanoseconds', () => {
  expect(nak(1_500)).toBe('-NAK {"delay":1500000000}');
  expect(nak()).toBe('-NAK');
});
