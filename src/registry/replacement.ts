/** What a bucket's stream says of itself. */
export interface BucketLook {
  /** When the stream was made, as the server tells it. */
  readonly created: string;
  readonly lastRevision: number;
}

/** A server that was replaced as the leader learns of it within 10 s. */
const LEAST_LOOKS_BEHIND = 10;

/**
 * Tells whether a bucket was made anew, so that what is known of it is void. A server that has just begun to lead, or
 * does not know yet that it no longer does, tells of fewer revisions than were heard of: that is believed when it stays
 * so, as after the restore of an older copy.
 */
export class Replacement {
  #created: string | undefined;
  #behind = 0;

  /** `heard`: the last revision that was heard of. To be asked every few seconds. */
  look({ created, lastRevision }: BucketLook, heard: number): boolean {
    const before = this.#created ?? created;
    this.#created = created;
    this.#behind = lastRevision < heard ? this.#behind + 1 : 0;
    const replaced = created !== before || this.#behind >= LEAST_LOOKS_BEHIND;
    if (replaced) this.#behind = 0;
    return replaced;
  }
}

/**
 * The revision before which nothing is in the bucket any more, as after a purge, which no watch tells of; 0 when it cannot be said yet. A
 * bucket keeps one revision of each key, so what is older was superseded or is gone. Only who has heard all that the bucket had can
 * tell the two apart: to others a changed record would seem to be gone until they hear of the change.
 */
export const goneBefore = (
  { firstRevision, lastRevision }: { readonly firstRevision: number; readonly lastRevision: number },
  heard: number,
): number => (heard >= lastRevision ? firstRevision : 0);
