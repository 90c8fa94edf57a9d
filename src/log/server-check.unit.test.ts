import { JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import { Patience } from '../platform/patience.ts';
import { requireServer, requireVersion } from './server-check.ts';

const connectionTo = (version: string, jetstream: boolean) =>
  ({ info: { version, jetstream } }) as unknown as NatsConnection;
const managerThat = (getAccountInfo: () => Promise<unknown>) =>
  ({ getAccountInfo }) as unknown as JetStreamManager;

describe('a server', () => {
  test.each(['2.14.0', '2.15.1', '2.15.0-dev', '3.0.0'])('of version %s is accepted', (version) => {
    expect(() => requireVersion(version)).not.toThrow();
  });

  test.each(['2.13.9', '2.9.25', '1.4.1', '0.0.0'])('of version %s is refused as too old', (version) => {
    expect(() => requireVersion(version)).toThrowError(
      expect.objectContaining({ code: 'nats_too_old', details: { version, required: '2.14.0' } }),
    );
  });

  test('that is too old is refused before it is asked anything', async () => {
    let asked = 0;
    const manager = managerThat(async () => {
      asked += 1;
    });
    await expect(requireServer(connectionTo('2.10.0', true), manager, new Patience())).rejects.toMatchObject({
      code: 'nats_too_old',
    });
    expect(asked).toBe(0);
  });

  test('whose account has no JetStream is refused', async () => {
    const manager = managerThat(async () => {
      throw new JetStreamApiError({
        code: 503,
        err_code: 10_039,
        description: 'JetStream not enabled for account',
      });
    });
    await expect(requireServer(connectionTo('2.15.1', true), manager, new Patience())).rejects.toMatchObject({
      code: 'jetstream_missing',
    });
  });

  test('without JetStream is refused', async () => {
    const manager = managerThat(async () => {
      throw Object.assign(new Error('jetstream is not enabled'), { name: 'JetStreamNotEnabled' });
    });
    await expect(requireServer(connectionTo('2.15.1', false), manager, new Patience())).rejects.toMatchObject(
      {
        code: 'jetstream_missing',
      },
    );
  });
});
