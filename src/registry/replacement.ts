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
