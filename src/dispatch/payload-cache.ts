import type { Json } from '../domain/json.ts';
import { type LiveTask, PayloadSize } from './live-task.ts';

/** Payload texts of waiting tasks, up to a number of bytes. A task beyond it is read again when its turn comes. */
export class PayloadCache {
  readonly #limits: { readonly inlinePayloadBytes: number; readonly payloadCacheBytes: number };
  #bytes = 0;

  constructor(limits: { readonly inlinePayloadBytes: number; readonly payloadCacheBytes: number }) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  keep(task: LiveTask, payload: Json): void {
    const text = JSON.stringify(payload);
    const small = Buffer.byteLength(text) <= this.#limits.inlinePayloadBytes;
    task.payloadSize = small ? PayloadSize.small : PayloadSize.large;
    // A large one goes by reference: its text is never needed here.
    if (!small || this.#bytes + text.length > this.#limits.payloadCacheBytes) return;
    task.payload = text;
    this.#bytes += text.length;
  }

  drop(task: LiveTask): void {
    if (task.payload === undefined) return;
    this.#bytes -= task.payload.length;
    task.payload = undefined;
  }
}
