/** Sends a request of the distribution to the server process, as to a Function URL. */
import { request as sendRequest, type IncomingMessage } from 'node:http';
import type { FunctionUrl } from './lambda/function-url.ts';
import type { UrlReply } from './lambda/url-reply.ts';

/** @param port of the process, as it is when a request comes */
export const serverUrl =
  (port: () => Promise<number>): FunctionUrl =>
  (request, { target, headers, reply }) => {
    const { method = 'GET', socket } = request;
    const unavailable = (): void => {
      if (reply.begun) return reply.abort();
      reply.begin(502, { 'content-type': 'text/html' });
      reply.end(Buffer.from('The server did not answer.\n'));
    };
    const send = (to: number): void => {
      const sent = sendRequest({ host: '127.0.0.1', port: to, method, path: target, headers });
      const leave = (): void => void sent.destroy();
      socket.once('close', leave);
      sent.once('close', () => socket.off('close', leave));
      sent.once('response', (answer) => passOn(answer, reply)).on('error', unavailable);
      request.once('end', () => reply.startWaiting());
      request.pipe(sent);
    };
    port().then(send, unavailable);
  };

/** The headers of its connection stay here. */
const ofConnection = new Set(['connection', 'keep-alive', 'transfer-encoding']);

function passOn(answer: IncomingMessage, reply: UrlReply): void {
  const kept = Object.entries(answer.headers).filter(([name]) => !ofConnection.has(name));
  reply.begin(answer.statusCode ?? 502, Object.fromEntries(kept));
  answer.on('data', (bytes: Buffer) => {
    if (reply.write(bytes)) return;
    answer.pause();
    reply.whenWritable(() => answer.resume());
  });
  answer.once('end', () => reply.end());
  // The server broke the answer off, or its process ended.
  answer.on('error', () => reply.abort());
}
