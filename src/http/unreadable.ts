import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { TaskledgerError } from '../domain/errors.ts';
import { errorBody } from './errors.ts';

/** Answers bytes that Node's parser could not take for HTTP, in the form of every other error, and hangs up. */
export function answerUnreadable(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
  const reason = status === 431 ? 'The headers are too large' : 'This is not a readable HTTP request';
  const body = JSON.stringify(errorBody(new TaskledgerError('request_invalid', { reason }), randomUUID()));
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
