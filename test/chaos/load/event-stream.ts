import { setTimeout as delay } from 'node:timers/promises';
import type { HeardCompletion } from '../checker/evidence.ts';

/** Somebody who follows completions over HTTP, from one API to the other, by the id of the last event that came whole. */
export interface EventStream {
  readonly heard: readonly HeardCompletion[];
  stop(): Promise<void>;
}

/** Now and then a client comes back for no reason. */
const RECONNECT_EVERY_MS = 8_000;
const AGAIN_AFTER_MS = 300;

export function followEvents(apis: readonly string[], key: string): EventStream {
  const heard: HeardCompletion[] = [];
  const stopped = new AbortController();
  const run = async (): Promise<void> => {
    for (let turn = 0; !stopped.signal.aborted; turn += 1) {
      const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(RECONNECT_EVERY_MS)]);
      await follow(apis[turn % apis.length] ?? '', signal).catch(() =>
        // Cut off, paused or restarted: what is missing comes with the next connection.
        delay(AGAIN_AFTER_MS, undefined, { signal: stopped.signal }).catch(() => undefined),
      );
    }
  };
  const follow = async (api: string, signal: AbortSignal): Promise<void> => {
    const response = await fetch(new URL('/v1/events?kind=COMPLETED', api), {
      headers: { authorization: `Bearer ${key}`, 'last-event-id': String(heard.at(-1)?.seq ?? 0) },
      signal,
    });
    if (!response.ok || response.body === null) throw new Error(`events answered ${response.status}`);
    let text = '';
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const messages = (text + chunk).split('\n\n');
      text = messages.pop() ?? '';
      for (const message of messages) heard.push(...completionIn(message));
    }
  };
  const running = run();
  return {
    heard,
    async stop() {
      stopped.abort();
      await running;
    },
  };
}

/** None in a comment, a gap or an end. */
function completionIn(message: string): HeardCompletion[] {
  const field = (name: string): string | undefined =>
    message
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const [id, data] = [field('id'), field('data')];
  if (id === undefined || data === undefined) return [];
  const { taskId } = JSON.parse(data) as { taskId: string };
  return [{ seq: Number(id), taskId }];
}
