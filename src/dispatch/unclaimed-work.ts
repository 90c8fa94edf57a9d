import type { DispatchCore } from './core.ts';

export type Offer = DispatchCore['offered'] extends Iterable<infer T> ? T : never;

/** What the server says of a line's shared consumer. */
export interface ConsumerState {
  /** Everything up to here that it has delivered is acked, or was never its to deliver. */
  readonly ackedUpTo: number;
  readonly deliveredUpTo: number;
  readonly ackPending: number;
}

/** A line's offers, of which some may be out of every worker's sight. */
export interface Suspects {
  readonly type: string;
  readonly version: number;
  readonly offers: readonly Offer[];
  /** Sequence of the oldest offer of the line: nothing before it is work. */
  readonly oldestSeq: number;
}

/**
 * Tells offers that no worker can see any more from those that wait for one. An offer is a suspect when it was there in
 * the pass before as well: what was acked a moment ago may have events that the reader has yet to bring.
 */
export class UnclaimedWork {
  #before = new Map<Offer, number>();

  /** The lines with suspects. */
  take(offers: Iterable<Offer>): Suspects[] {
    const now = new Map<Offer, number>();
    const lines = new Map<string, { offers: Offer[]; oldestSeq: number; line: Offer['line'] }>();
    for (const offer of offers) {
      now.set(offer, offer.seq);
      const { line } = offer;
      const of = lines.get(line.key) ?? { offers: [], oldestSeq: offer.seq, line };
      lines.set(line.key, of);
      of.oldestSeq = Math.min(of.oldestSeq, offer.seq);
      if (this.#before.get(offer) === offer.seq) of.offers.push(offer);
    }
    this.#before = now;
    return [...lines.values()]
      .filter(({ offers: suspects }) => suspects.length > 0)
      .map(({ offers: suspects, oldestSeq, line: { type, version } }) => ({
        type,
        version,
        offers: suspects,
        oldestSeq,
      }));
  }
}

/** Whether the consumer will never deliver the offer again: it has it behind itself, and nothing un-acked. */
export const isLost = ({ seq }: Pick<Offer, 'seq'>, consumer: ConsumerState): boolean =>
  seq <= consumer.ackedUpTo || (consumer.ackPending === 0 && seq <= consumer.deliveredUpTo);
