/** A process: an upstream of three dialects that reads only the first bytes of a body, because the upstream's cost is not measured. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

const frame = (fields: object, event?: string): string =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(fields)}\n\n`;
const usage = { prompt_tokens: 20, completion_tokens: 4, total_tokens: 24 };
const largeLength = 8 * 1024 * 1024;
/** A body that may contain the word. */
const shortLength = 2_000;

function chat(content: string): string {
  const chunk = (fields: object): string =>
    frame({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1, model: 'bench', ...fields });
  const choice = (delta: object, finish_reason: string | null = null): string =>
    chunk({ choices: [{ index: 0, delta, finish_reason }] });
  const texts = content.match(/.{1,900000}/g) ?? [];
  const contents = texts.map((each) => choice({ role: 'assistant', content: each }));
  return `${contents.join('')}${choice({}, 'stop')}${chunk({ choices: [], usage })}data: [DONE]\n\n`;
}

function messages(): string {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude', content: [] };
  const counts = { input_tokens: 20, output_tokens: 4 };
  return [
    { type: 'message_start', message: { ...message, stop_reason: null, usage: counts } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: counts },
    { type: 'message_stop' },
  ]
    .map((each) => frame(each, each.type))
    .join('');
}

function embeddings(body: string): string {
  const { input, dimensions = 8 } = JSON.parse(body) as { input: unknown[]; dimensions?: number };
  const embedding = Array.from({ length: dimensions }, (_, at) => Math.fround(at / 7));
  const data = input.map((_, index) => ({ object: 'embedding', index, embedding }));
  return JSON.stringify({ object: 'list', model: 'vectors', data, usage });
}

async function read(request: IncomingMessage): Promise<string> {
  if (request.url?.endsWith('/embeddings')) return text(request);
  let head = '';
  for await (const piece of request as AsyncIterable<Buffer>)
    if (head.length < shortLength) head += piece.toString('latin1', 0, shortLength);
  return head;
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await read(request);
  const path = request.url ?? '';
  if (path.endsWith('/embeddings'))
    return void response.writeHead(200, { 'content-type': 'application/json' }).end(embeddings(body));
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (path.endsWith('/messages')) return void response.end(messages());
  response.end(chat(body.includes('bench large') ? 'x'.repeat(largeLength) : 'hello'));
}

createServer((request, response) => {
  answer(request, response).catch(() => response.destroy());
})
  .listen(Number(process.env['PORT']), '127.0.0.1', () => console.log('ready'))
  .on('connection', (socket) => socket.setNoDelay(true));
