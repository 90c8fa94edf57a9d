import type { EventAnswer } from './answers.ts';

/** A message of `GET /v1/events`. A comment moves the position only. */
export type FeedMessage =
  | { readonly kind: 'event'; readonly position: number; readonly event: EventAnswer }
  /** Events that were asked for have aged out of the log. */
  | { readonly kind: 'gap' }
  | { readonly kind: 'position'; readonly position: number }
  /** The server ends the stream. */
  | { readonly kind: 'end' };

/** Calls `heard` for every chunk. What comes after the last whole message is lost with the connection, and comes again. */
export async function* messagesOf(
  body: ReadableStream<Uint8Array>,
  heard: () => void,
): AsyncGenerator<FeedMessage> {
  let text = '';
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    heard();
    const messages = (text + chunk).split('\n\n');
    text = messages.pop() ?? '';
    for (const message of messages) yield* parsed(message);
  }
}

function* parsed(message: string): Generator<FeedMessage> {
  const field = (name: string): string | undefined =>
    message
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const [id, name, data] = [field('id'), field('event'), field('data')];
  if (name === 'gap' || name === 'end') yield { kind: name };
  else if (id !== undefined && data === undefined) yield { kind: 'position', position: Number(id) };
  else if (id !== undefined && data !== undefined)
    yield { kind: 'event', position: Number(id), event: JSON.parse(data) as EventAnswer };
}
