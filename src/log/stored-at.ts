/**
 * Nanoseconds since 1970, as the servers write them into an ack subject, in ms. They are cut and not rounded, as those of a message's
 * `Nats-Time-Stamp` are, so that an event has one time however it is read: no number holds so many digits.
 */
export const msOfNanos = (nanos: string | undefined): number => Number((nanos ?? '').slice(0, -6));
