import { type NatsConnection, TimeoutError } from '@nats-io/transport-node';

/**
 * The connection as it is while servers elect their leaders: of the requests whose subject begins with `prefix` the first, the
 * third and so on of each subject get no answer. `asked` counts them by subject.
 */
export const hardOfHearing = (
  nc: NatsConnection,
  prefix: string,
  asked = new Map<string, number>(),
): NatsConnection =>
  new Proxy(nc, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function') return value;
      if (property !== 'request') return value.bind(target) as unknown;
      const request: NatsConnection['request'] = async (subject, ...rest) => {
        if (subject.startsWith(prefix)) {
          const before = asked.get(subject) ?? 0;
          asked.set(subject, before + 1);
          if (before % 2 === 0) throw new TimeoutError();
        }
        return target.request(subject, ...rest);
      };
      return request;
    },
  });
