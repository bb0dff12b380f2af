import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DemoAnswer, DemoChoice } from './answer.ts';
import type { DemoRequest } from './request.ts';

export const wordMs = 20;
const id = 'chatcmpl-demo';
const nowSeconds = (): number => Math.floor(Date.now() / 1000);

export function sendJson(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

export interface DemoError {
  status: number;
  message: string;
  code: string;
}

export function sendError(response: ServerResponse, { status, message, code }: DemoError): void {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  sendJson(response, status, { error: { message, type, param: null, code } });
}

export async function sendJsonAnswer(
  response: ServerResponse,
  request: DemoRequest,
  answer: DemoAnswer,
): Promise<void> {
  if (!(await waited(answer.firstTokenMs, response))) return;
  const choices = answer.choices.map((choice, index) => ({
    index,
    message: {
      role: 'assistant',
      content: choice.toolCall ? null : choice.words.join(''),
      ...(choice.toolCall && { tool_calls: [toolCallOf(choice.toolCall)] }),
    },
    logprobs: null,
    finish_reason: choice.finishReason,
  }));
  sendJson(response, 200, {
    id,
    object: 'chat.completion',
    created: nowSeconds(),
    model: request.model,
    choices,
    usage: answer.usage,
  });
}

/** Streams word by word, all choices in parallel. Stops when the caller disconnects. */
export async function sendStream(
  response: ServerResponse,
  request: DemoRequest,
  answer: DemoAnswer,
): Promise<void> {
  const created = nowSeconds();
  const asked = request.stream_options?.include_usage === true;
  const send = (choices: object[], usage: object | null) => {
    const chunk = { id, object: 'chat.completion.chunk', created, model: request.model, choices };
    response.write(`data: ${JSON.stringify(asked ? { ...chunk, usage } : chunk)}\n\n`);
  };
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.flushHeaders();
  if (!(await waited(answer.firstTokenMs, response))) return;
  const deltas = answer.choices.map(deltasOf);
  const steps = Math.max(...deltas.map((list) => list.length));
  for (let step = 0; step < steps; step++) {
    for (const [index, list] of deltas.entries()) {
      const delta = list[step];
      if (delta) send([{ index, delta, logprobs: null, finish_reason: null }], null);
    }
    if (!(await waited(wordMs, response))) return;
  }
  for (const [index, { finishReason }] of answer.choices.entries())
    send([{ index, delta: {}, logprobs: null, finish_reason: finishReason }], null);
  if (asked) send([], answer.usage);
  response.end('data: [DONE]\n\n');
}

function deltasOf({ words, toolCall }: DemoChoice): object[] {
  if (!toolCall) return [{ role: 'assistant', content: '' }, ...words.map((content) => ({ content }))];
  const first = { index: 0, ...toolCallOf({ ...toolCall, arguments: '' }) };
  const pieces = toolCall.arguments.match(/.{1,12}/gs) ?? [];
  return [
    { role: 'assistant', content: null, tool_calls: [first] },
    ...pieces.map((piece) => ({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
  ];
}

const toolCallOf = ({ id: callId, name, arguments: text }: NonNullable<DemoChoice['toolCall']>) => ({
  id: callId,
  type: 'function',
  function: { name, arguments: text },
});

/** Resolves to false when the caller has disconnected. */
async function waited(milliseconds: number, response: ServerResponse): Promise<boolean> {
  await sleep(milliseconds);
  return !response.destroyed;
}
