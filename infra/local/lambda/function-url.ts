import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { LocalFunction } from './local-function.ts';
import { toUrlEvent } from './url-event.ts';
import { respondTo, type InvokeMode, type UrlReply } from './url-reply.ts';

const requestBytesMax = 6 * 1024 * 1024;

/** The origin's view of a request. The body is read from the viewer's request. */
export interface OriginRequest {
  /** Path and query. */
  target: string;
  headers: IncomingHttpHeaders;
  reply: UrlReply;
}

/** Answers a request by invoking a function once the body of the request is complete. */
export type FunctionUrl = (request: IncomingMessage, origin: OriginRequest) => void;

/** Emulates a Function URL. It rejects only bodies that are too large, as Lambda does. */
export const functionUrl =
  (target: LocalFunction, mode: InvokeMode, domain: string): FunctionUrl =>
  (request, { target: pathAndQuery, headers, reply }) =>
    readBody(request, (body) => {
      if (body === undefined) {
        reply.begin(413, { 'content-type': 'application/json' });
        return reply.end(Buffer.from('{"message":"Request Too Long"}'));
      }
      const requestId = randomUUID();
      const { method = 'GET', socket } = request;
      const sourceIp = socket.remoteAddress?.replace('::ffff:', '') ?? '127.0.0.1';
      const received = { method, target: pathAndQuery, headers, body, sourceIp, domain };
      reply.startWaiting();
      target.invoke(toUrlEvent(received, requestId), respondTo(reply, mode, requestId), requestId);
    });

/**
 * Calls back once: with the whole body, or with undefined as soon as it is too large. Does not call back when
 * the viewer disconnects.
 */
function readBody(request: IncomingMessage, done: (body: Buffer | undefined) => void): void {
  const pieces: Buffer[] = [];
  let size = 0;
  const take = (bytes: Buffer) => {
    size += bytes.length;
    pieces.push(bytes);
    if (size <= requestBytesMax) return;
    request.off('data', take).off('end', end).resume();
    done(undefined);
  };
  const end = () => done(Buffer.concat(pieces));
  request.on('data', take).once('end', end);
  request.on('error', () => {});
}
