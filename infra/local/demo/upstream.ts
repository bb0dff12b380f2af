import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { closeServer, listenOnLoopback, serverForPrograms } from '../host/loopback.ts';

/**
 * A small scripted OpenAI-compatible server on loopback: the local stack answers without an API key. It takes
 * no credentials. Port 0 picks a free port. Equal requests get equal answers.
 */
export async function startDemoUpstream(port = 0): Promise<{ port: number; close(): Promise<void> }> {
  const server = serverForPrograms((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  return { port: await listenOnLoopback(server, port), close: () => closeServer(server) };
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url?.split('?')[0];
  if (request.method === 'GET' && path === '/v1/models')
    return sendJson(response, 200, {
      object: 'list',
      data: demoModels.map((id) => ({ id, object: 'model', created: 0, owned_by: 'demo' })),
    });
  if (request.method === 'POST' && path === '/v1/chat/completions') return chat(request, response);
  const message = 'There is no such endpoint in the demo upstream.';
  return sendError(response, { status: 404, message, code: 'not_found' });
}

async function chat(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body: unknown = await json(request).catch(() => undefined);
  if (!isDemoRequest(body))
    return sendError(response, {
      status: 400,
      message: 'A model and messages are wanted.',
      code: 'invalid_request',
    });
  if (!demoModels.includes(body.model))
    return sendError(response, {
      status: 404,
      message: `The model ${body.model} does not exist.`,
      code: 'model_not_found',
    });
  if (body.model === 'demo-error') return fail(lastUserText(body), response);
  const answer = demoAnswer(body);
  return body.stream === true ? sendStream(response, body, answer) : sendJsonAnswer(response, body, answer);
}

/** The fields of a chat request that the demo upstream reads. */
interface DemoRequest {
  model: string;
  messages: DemoMessage[];
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  n?: number | null;
  stop?: string | string[] | null;
  tools?: DemoTool[] | null;
  tool_choice?: 'none' | 'auto' | 'required' | { function?: { name: string } } | null;
}

interface DemoMessage {
  role: string;
  content?: string | { type: string; text?: string }[] | null;
  tool_call_id?: string;
  tool_calls?: { id: string; function: { name: string } }[] | null;
}

interface DemoTool {
  function?: { name: string; parameters?: JsonSchema };
}

export interface JsonSchema {
  type?: string | string[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  anyOf?: JsonSchema[];
  minimum?: number;
}

export const demoModels = ['demo-chat', 'demo-vision', 'demo-slow', 'demo-error'];

function isDemoRequest(body: unknown): body is DemoRequest {
  if (typeof body !== 'object' || body === null) return false;
  const { model, messages } = body as Partial<DemoRequest>;
  return typeof model === 'string' && Array.isArray(messages) && messages.length > 0;
}

function textOf(message: DemoMessage | undefined): string {
  if (typeof message?.content === 'string') return message.content;
  return message?.content?.map((part) => part.text ?? '').join(' ') ?? '';
}

const lastUserText = (request: DemoRequest): string =>
  textOf(request.messages.findLast((message) => message.role === 'user'));

function imagesIn(request: DemoRequest): number {
  const parts = request.messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  return parts.filter((part) => part.type === 'image_url').length;
}

interface DemoAnswer {
  choices: DemoChoice[];
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
  /** Pause before the first word. */
  firstTokenMs: number;
}

/** Each word includes the space before it; joining them gives the text. One word counts as one token. */
interface DemoChoice {
  words: string[];
  toolCall?: { id: string; name: string; arguments: string };
  finishReason: 'stop' | 'length' | 'tool_calls';
}

function demoAnswer(request: DemoRequest): DemoAnswer {
  const choices = Array.from({ length: request.n ?? 1 }, (_, index) => choiceOf(request, index));
  const promptTokens = promptTokensOf(request);
  const completionTokens = choices.reduce((sum, choice) => sum + tokensOf(choice), 0);
  return {
    choices,
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
    firstTokenMs: request.model === 'demo-slow' ? 3000 : 20,
  };
}

function choiceOf(request: DemoRequest, index: number): DemoChoice {
  const tool = toolToCall(request);
  if (tool?.function) {
    const { name, parameters } = tool.function;
    const toolCall = {
      id: `call_demo_${index}`,
      name,
      arguments: argumentsFor(parameters, lastUserText(request)),
    };
    return { words: [], toolCall, finishReason: 'tool_calls' };
  }
  const words = beforeStop(answerText(request, index), request.stop).match(/\s*\S+\s*$|\s*\S+/g) ?? [];
  const limit = request.max_completion_tokens ?? request.max_tokens ?? Infinity;
  if (words.length > limit) return { words: words.slice(0, limit), finishReason: 'length' };
  return { words, finishReason: 'stop' };
}

/** The forced tool, or the first one when the user's text mentions a tool. None after a tool's result. */
function toolToCall({ tools, tool_choice: choice, messages }: DemoRequest): DemoTool | undefined {
  const last = messages.at(-1);
  if (!tools?.[0] || choice === 'none' || last?.role !== 'user') return undefined;
  if (choice === 'required') return tools[0];
  if (typeof choice === 'object' && choice?.function) {
    const wanted = choice.function.name;
    return tools.find((tool) => tool.function?.name === wanted) ?? tools[0];
  }
  const text = textOf(last).toLowerCase();
  const names = tools.flatMap((tool) => tool.function?.name.toLowerCase().split(/[^a-z]+/) ?? []);
  const spokenOf = names.some((word) => word.length >= 4 && text.includes(word));
  return spokenOf || text.includes('tool') ? tools[0] : undefined;
}

function answerText(request: DemoRequest, index: number): string {
  const last = request.messages.at(-1);
  const which = index === 0 ? '' : ` (Answer ${index + 1}.)`;
  if (last?.role === 'tool')
    return `The tool ${toolName(request, last.tool_call_id)}answered: ${textOf(last)}${which}`;
  if (request.model === 'demo-vision') return `I got ${imageCount(imagesIn(request))} from you.${which}`;
  const said = lastUserText(request).trim();
  if (said === '') return `Hello! I am the demo model of this relay.${which}`;
  return `Hello! You said: "${said}". I am the demo model of this relay, so this is all I know.${which}`;
}

function toolName({ messages }: DemoRequest, id: string | undefined): string {
  const call = messages
    .flatMap((message) => message.tool_calls ?? [])
    .find((candidate) => candidate.id === id);
  return call ? `${call.function.name} ` : '';
}

const imageCount = (count: number): string =>
  count === 1 ? '1 image' : `${count === 0 ? 'no' : count} images`;

function beforeStop(text: string, stop: DemoRequest['stop']): string {
  const marks = [stop ?? []].flat().filter((mark) => mark !== '');
  const ends = marks.map((mark) => text.indexOf(mark)).filter((at) => at >= 0);
  return text.slice(0, Math.min(text.length, ...ends));
}

/** A rough estimate: 4 characters per token, plus 4 tokens per message and 85 per image. */
function promptTokensOf(request: DemoRequest): number {
  const characters = request.messages.reduce((sum, message) => sum + textOf(message).length, 0);
  const tools = request.tools?.length ? JSON.stringify(request.tools).length : 0;
  return Math.ceil((characters + tools) / 4) + 4 * request.messages.length + 85 * imagesIn(request);
}

const tokensOf = ({ words, toolCall }: DemoChoice): number =>
  words.length + (toolCall ? 5 + Math.ceil(toolCall.arguments.length / 4) : 0);

/** Arguments (JSON text) that match a schema, made from the user's text. */
export const argumentsFor = (schema: JsonSchema | undefined, said: string): string =>
  JSON.stringify(schema === undefined ? {} : objectOf(schema, said, 0));

const depthMax = 6;

function objectOf(
  { properties = {}, required }: JsonSchema,
  said: string,
  depth: number,
): Record<string, unknown> {
  const wanted = required ?? Object.keys(properties);
  return Object.fromEntries(
    wanted.map((name) => [name, valueOf(properties[name] ?? {}, { name, said, depth: depth + 1 })]),
  );
}

interface Place {
  /** Name of the property whose value is made. */
  name: string;
  said: string;
  depth: number;
}

function valueOf(schema: JsonSchema, place: Place): unknown {
  const { name, said, depth } = place;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined)
    return schema.enum.find((choice) => said.includes(String(choice))) ?? schema.enum[0];
  if (schema.default !== undefined) return schema.default;
  if (depth > depthMax) return null;
  if (schema.anyOf?.[0]) return valueOf(schema.anyOf[0], { ...place, depth: depth + 1 });
  switch ([schema.type ?? []].flat()[0] ?? 'string') {
    case 'object':
      return objectOf(schema, said, depth);
    case 'array':
      return [valueOf(schema.items ?? {}, { ...place, depth: depth + 1 })];
    case 'boolean':
      return true;
    case 'number':
    case 'integer':
      return Number(/-?\d+/.exec(said)?.[0] ?? schema.minimum ?? 1);
    case 'null':
      return null;
    default:
      return textFor(name, said);
  }
}

function textFor(name: string, said: string): string {
  if (/city|place|location|country/i.test(name))
    return /\b(?:in|at|for) (\p{Lu}\p{L}+)/u.exec(said)?.[1] ?? 'Paris';
  // Coding agents run this in a shell, so it must not contain the user's text.
  if (/^(cmd|command)$/i.test(name)) return 'ls';
  if (/date|day/i.test(name)) return '2026-01-31';
  return said;
}

const wordMs = 20;
const id = 'chatcmpl-demo';
const nowSeconds = (): number => Math.floor(Date.now() / 1000);

function sendJson(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

interface DemoError {
  status: number;
  message: string;
  code: string;
}

function sendError(response: ServerResponse, { status, message, code }: DemoError): void {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  sendJson(response, status, { error: { message, type, param: null, code } });
}

async function sendJsonAnswer(
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
async function sendStream(response: ServerResponse, request: DemoRequest, answer: DemoAnswer): Promise<void> {
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
async function fail(said: string, response: ServerResponse): Promise<void> {
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
