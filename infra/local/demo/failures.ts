import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { sendError, wordMs } from './reply.ts';

/** Failures of `demo-error` that the user's text can select, besides a status such as `status 429`. */
const failures: { asked: RegExp; run: (response: ServerResponse) => unknown }[] = [
  { asked: /error mid-stream/i, run: async (response) => (await writeWords(response)).end(errorFrame) },
  { asked: /early stop/i, run: async (response) => (await writeWords(response)).end() },
  { asked: /hang up/i, run: async (response) => (await writeWords(response)).destroy() },
  { asked: /silence/i, run: (response) => startStream(response).flushHeaders() },
  { asked: /empty/i, run: (response) => startStream(response).end() },
  {
    asked: /html/i,
    run: (response) =>
      response.writeHead(502, { 'content-type': 'text/html' }).end('<html><h1>502 Bad Gateway</h1></html>'),
  },
];

/** Fails in the way that the user's last text selects; default: status 500. */
export async function fail(said: string, response: ServerResponse): Promise<void> {
  const failure = failures.find(({ asked }) => asked.test(said));
  if (failure) {
    await failure.run(response);
    return;
  }
  const status = Number(/status ([45]\d\d)/i.exec(said)?.[1] ?? 500);
  if (status === 429) response.setHeader('retry-after', '2');
  const code = status === 429 ? 'rate_limit_exceeded' : 'demo_error';
  sendError(response, { status, message: `The demo upstream answers ${status}, as asked.`, code });
}

const errorFrame = `data: ${JSON.stringify({
  error: { message: 'The demo model broke off.', type: 'server_error', param: null, code: 'server_error' },
})}\n\n`;

const startStream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' });

/** Pauses between words, so that the failure arrives after the words and not together with them. */
async function writeWords(response: ServerResponse): Promise<ServerResponse> {
  startStream(response);
  for (const content of ['This', ' answer', ' will', ' not']) {
    const choices = [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }];
    const chunk = {
      id: 'chatcmpl-demo',
      object: 'chat.completion.chunk',
      created: 0,
      model: 'demo-error',
      choices,
    };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    await sleep(wordMs);
  }
  return response;
}
