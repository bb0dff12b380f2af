import type { Script } from './scripted-upstream.ts';
import { chunk } from './upstream-frames.ts';

/** Ready-made upstream failures. None of their words may reach a client or a log unscrubbed. */

export const errorStatus =
  (status: number, error: object = {}, headers: Record<string, string> = {}): Script =>
  (_call, reply) =>
    reply.json(
      status,
      {
        error: {
          message: 'upstream words',
          type: 'upstream_type',
          param: null,
          code: 'upstream_code',
          ...error,
        },
      },
      headers,
    );

export const htmlStatus =
  (status: number): Script =>
  (_call, reply) => {
    reply.head(status, { 'content-type': 'text/html' });
    reply.end('<html><body><h1>upstream words</h1></body></html>');
  };

export const upstreamError = {
  error: { message: 'upstream words', type: 'server_error', param: null, code: 'upstream_code' },
};

/** A 200 that contains an error. */
export const errorInJson200: Script = (_call, reply) => reply.json(200, upstreamError);

export const errorAsFirstFrame: Script = async (_call, reply) => {
  await reply.data(upstreamError);
  reply.end();
};

export const errorMidStream: Script = async (_call, reply) => {
  await reply.data(chunk({ role: 'assistant', content: 'one two' }), upstreamError);
  reply.end();
};

export const html200 = htmlStatus(200);

export const empty200: Script = (_call, reply) => reply.end();

export const emptyJson200: Script = (_call, reply) => {
  reply.head(200, { 'content-type': 'application/json' });
  reply.end();
};

/** `[DONE]` and nothing before it. */
export const doneAlone: Script = async (_call, reply) => {
  await reply.data('[DONE]');
  reply.end();
};

/** Content, then the end without finish reason or `[DONE]`. */
export const stopsEarly: Script = async (_call, reply) => {
  await reply.data(chunk({ role: 'assistant', content: 'one' }), chunk({ content: ' two' }));
  reply.end();
};

export const resetsBeforeHead: Script = (_call, reply) => reply.reset();

/** Lines that follow no protocol, then the end. */
export const junkAlone: Script = async (_call, reply) => {
  await reply.write('what is this\n{"not":"sse"}\ndata: {broken\n\ndata\n\n\u0000\u0001\n\n');
  reply.end();
};
