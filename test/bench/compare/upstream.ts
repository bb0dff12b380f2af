/** A process: an upstream that answers chat completions as its caller's last message says. */
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';

/** `bench CHUNKS PAUSE_MS stamped|plain` in any message. */
export const wish = (chunks: number, pauseMs = 0, stamped = false): string =>
  `bench ${chunks} ${pauseMs} ${stamped ? 'stamped' : 'plain'}`;

const frame = (fields: object): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_760_000_000, model: 'bench', service_tier: 'default', system_fingerprint: 'fp_1', ...fields })}\n\n`;
const choice = (delta: object, finish_reason: string | null = null): object => ({
  choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  usage: null,
});

async function answer(body: string, response: ServerResponse): Promise<void> {
  const [, chunks = '1', pause = '0', kind] = /bench (\d+) (\d+) (stamped|plain)/.exec(body) ?? [];
  const count = Number(chunks);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(frame(choice({ role: 'assistant', content: '' })));
  for (let index = 0; index < count; index += 1) {
    const said = kind === 'stamped' ? ` at=${process.hrtime.bigint()};` : ' and then a word';
    response.write(frame(choice({ content: said })));
    // One write to the socket for each chunk.
    await (pause === '0' ? turn() : sleep(Number(pause)));
  }
  const usage = { prompt_tokens: 20, completion_tokens: count * 4, total_tokens: 20 + count * 4 };
  response.write(frame(choice({}, 'stop')));
  response.end(`${frame({ choices: [], usage })}data: [DONE]\n\n`);
}

if (import.meta.main)
  createServer((request, response) => {
    void text(request).then((body) => answer(body, response));
  })
    .listen(Number(process.env['PORT']), '127.0.0.1', () => console.log('ready'))
    .on('connection', (socket) => socket.setNoDelay(true));
