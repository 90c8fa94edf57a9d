import { JetStreamApiError } from '@nats-io/jetstream';
import { describe, expect, test } from 'vitest';
import { CopiesJudge } from './copies.ts';

function setup(connect_urls?: string[]) {
  let now = 0;
  const cluster = () => ({ cluster: 'east', ...(connect_urls === undefined ? {} : { connect_urls }) });
  const judge = new CopiesJudge({ replicas: 5, cluster, now: () => now });
  return {
    said: (description: string, err_code = 10_005) =>
      judge.judge(new JetStreamApiError({ code: 400, err_code, description })),
    pass: (ms: number) => {
      now += ms;
    },
  };
}

const TOO_FEW = 'no suitable peers for placement';

describe('a cluster that has met fewer servers than copies are asked for', () => {
  test('is waited for while it may be forming, with what to do, and then the setting is invalid', () => {
    const { said, pass } = setup(['a:1', 'b:1', 'c:1']);
    const waits = said(TOO_FEW);
    expect(waits).toMatchObject({ code: 'log_unavailable', retryable: true });
    expect(waits?.message).toContain('5 copies need as many servers, and cluster "east" has 3');
    expect(waits?.message).toContain('lower TASKLEDGER_REPLICAS or add servers');
    pass(9_999);
    expect(said(TOO_FEW)?.code).toBe('log_unavailable');
    pass(1);
    const ends = said(TOO_FEW);
    expect(ends).toMatchObject({ code: 'config_invalid', retryable: false });
    expect(ends?.message).toContain('TASKLEDGER_REPLICAS is invalid: 5 copies need as many servers');
  });

  test('is waited for anew after it has said something else', () => {
    const { said, pass } = setup();
    expect(said(TOO_FEW)?.code).toBe('log_unavailable');
    pass(9_000);
    expect(said('JetStream system temporarily unavailable', 10_008)).toBeUndefined();
    pass(2_000);
    expect(said(TOO_FEW)?.code).toBe('log_unavailable');
  });

  test('is not said to have more than were asked for, when servers announce several addresses', () => {
    const { said } = setup(['a:1', 'a:2', 'b:1', 'b:2', 'c:1', 'c:2']);
    expect(said(TOO_FEW)?.message).toContain('cluster "east" has fewer');
  });
});

test('servers that are passed over for a reason that may pass are no matter of the setting', () => {
  const { said, pass } = setup();
  for (const reason of ['insufficient storage', 'peer offline', 'miscellaneous issue']) {
    expect(said(`${TOO_FEW}, ${reason}`)).toBeUndefined();
    pass(20_000);
  }
});

test('a server in no cluster is no home for more than one copy, which no wait changes', () => {
  const { said } = setup();
  expect(said('replicas > 1 not supported in non-clustered mode', 10_074)?.code).toBe('config_invalid');
});
