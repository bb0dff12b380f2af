/**
 * Processes of the functions, with AWS's runtime client and the template's memory of 256 MB. The limit here is 200 MB, as
 * the kernel counts it.
 */
import { zstdCompressSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Script, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { answersWith } from '../local/metered-upstream.ts';
import { hardeningStack } from './hardening-stack.ts';
import * as large from './large-answers.ts';
import { peakMegabytes } from './process-memory.ts';
import type { WatchedStack } from './watched-stack.ts';

const megabyte = 1024 * 1024;
const megabytesMax = 200;

let upstream: ScriptedUpstream;
let stack: WatchedStack;

beforeAll(async () => {
  ({ upstream, stack } = await hardeningStack());
});

type FunctionName = 'chat' | 'responses' | 'messages';
const paths = { chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages' };
const hello = {
  chat: { model: 'plain', messages: [{ role: 'user', content: 'hi' }] },
  responses: { model: 'plain', input: 'hi' },
  messages: { model: 'plain', max_tokens: 1000, messages: [{ role: 'user', content: 'hi' }] },
};

/** Starts a process that has served one call. */
async function fresh(name: FunctionName): Promise<number> {
  await stack.killProcesses(name);
  upstream.script(answersWith({ text: 'Hello there.', input: 9, output: 3, isCut: false }));
  const response = await stack.post(hello[name], { path: paths[name] });
  expect(await response.text()).toContain('Hello');
  const pid = stack.processes(name).at(-1) ?? 0;
  return pid;
}

interface Outcome {
  status: number;
  /** The last kilobyte of the answer. */
  end: string;
  bytes: number;
}

/** One call in a new process, which must survive within its memory. */
async function within(
  name: FunctionName,
  body: object | string,
  { script, headers = {} }: { script?: Script; headers?: Record<string, string> } = {},
): Promise<Outcome> {
  const pid = await fresh(name);
  if (script) upstream.script(script);
  const response = await stack.post(body, { path: paths[name], headers });
  let bytes = 0;
  let end = Buffer.alloc(0);
  for await (const piece of response.body ?? []) {
    bytes += piece.length;
    end = Buffer.concat([end, piece]).subarray(-1024);
  }
  expect(stack.processes(name).at(-1)).toBe(pid);
  expect(peakMegabytes(pid)).toBeLessThan(megabytesMax);
  return { status: response.status, end: end.toString(), bytes };
}

/** A body of this many bytes, with `piece` repeated in place of `*`. */
function sized(bytes: number, form: string, piece = 'x'): string {
  const count = Math.floor((bytes - form.length + 1) / Buffer.byteLength(piece));
  return form.replace('*', () => piece.repeat(count));
}
const chatForm = '{"model":"plain","messages":[{"role":"user","content":"*"}]}';
const imageForm = chatForm.replace(
  '"*"',
  '[{"type":"image_url","image_url":{"url":"data:image/png;base64,*"}}]',
);
const messagesForm = chatForm.replace('{', '{"max_tokens":9,');
const claudeForm = messagesForm.replace('plain', 'claude');
const instructionsForm = '{"model":"plain","stream":true,"input":"x","instructions":"*"}';
const list = <T>(length: number, each: (at: number) => T): T[] => Array.from({ length }, (_, at) => each(at));
/** As many as 6 MB may have. */
const manyMessages = list(49_000, () => ({ role: 'user', content: 'x'.repeat(99) }));
const manyBlocks = list(36_000, (at) => ({
  type: 'text',
  text: `block ${at}`.padEnd(125),
  cache_control: null,
}));
const namespace = (name: string, count: number): object => ({
  ...hello.responses,
  tools: [{ type: 'namespace', name, tools: list(count, (at) => ({ type: 'function', name: `a${at}` })) }],
});

/** `npm test` covers two requests and some of the answers, each in one form; `test/long/memory.test.ts` covers all. */
const everyForm = process.env['MEMORY_FORMS'] === 'every';

/** An uncompressed body, which is text in an event of 6 MB. All other bodies are compressed. */
const asItIs = 'of 5.9 MB, uncompressed';
const requests: [string, FunctionName, object | string, number][] = [
  [asItIs, 'chat', sized(5.9 * megabyte, chatForm, 'aé漢😀'), 200],
  ['that decompresses to more than 6 MB', 'chat', sized(7 * megabyte, chatForm), 413],
  ['of 6 MB', 'chat', sized(6 * megabyte, chatForm), 200],
  ['of 6 MB beyond Latin-1', 'chat', sized(6 * megabyte, chatForm, 'aé漢😀'), 200],
  ['of 6 MB of escapes', 'chat', sized(6 * megabyte, chatForm, String.raw`\u6c49\"`), 200],
  ['with an image of 6 MB', 'chat', sized(6 * megabyte, imageForm, 'QUJD'), 200],
  [
    'with instructions of 6 MB, which are repeated',
    'responses',
    sized(6 * megabyte, instructionsForm, '漢'),
    200,
  ],
  ['of 49,000 messages', 'chat', { ...hello.chat, messages: manyMessages }, 200],
  ['of 49,000 messages for a response', 'responses', { ...hello.responses, input: manyMessages }, 200],
  ['of 6 MB for a message', 'messages', sized(6 * megabyte, messagesForm, '漢'), 200],
  ['of 49,000 turns for a message', 'messages', { ...hello.messages, messages: manyMessages }, 200],
  ['of 6 MB that is sent unchanged', 'messages', sized(6 * megabyte, claudeForm, String.raw`\u6c49\"`), 200],
  [
    'of 36,000 blocks that are sent unchanged',
    'messages',
    { ...hello.messages, model: 'claude', messages: [{ role: 'user', content: manyBlocks }] },
    200,
  ],
  ['with a namespace with a long name', 'responses', namespace('n'.repeat(100_000), 2500), 400],
  ['with a namespace of 30,000 tools', 'responses', namespace('n'.repeat(64), 30_000), 200],
  [
    'with a tool with a long name',
    'chat',
    { ...hello.chat, tools: [{ type: 'function', function: { name: 'n'.repeat(3 * megabyte) } }] },
    400,
  ],
];

describe('a request is served or rejected within the memory of its function', () => {
  test.each(requests.filter((_, at) => everyForm || at % 6 === 4))(
    '%s',
    async (name, endpoint, body, status) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const sent = name === asItIs ? text : Uint8Array.from(zstdCompressSync(text));
      const headers: Record<string, string> = name === asItIs ? {} : { 'content-encoding': 'zstd' };
      expect(await within(endpoint, sent, { headers })).toMatchObject({ status });
    },
  );
});

const asked = {
  chat: { ...hello.chat, logprobs: true, top_logprobs: 20 },
  responses: { ...hello.responses, include: ['message.output_text.logprobs'], top_logprobs: 20 },
  messages: hello.messages,
};
const usual = {
  chat: hello.chat,
  responses: { ...hello.responses, reasoning: { summary: 'auto' } },
  messages: { ...hello.messages, thinking: { type: 'adaptive' } },
};

/** The result as JSON and as a stream: `whole`, or the code of the error. */
interface Ends {
  chat: [json: string, stream: string];
  responses: [json: string, stream: string];
  messages: [json: string, stream: string];
}
const all = (end: string): Ends => ({ chat: [end, end], responses: [end, end], messages: [end, end] });
const tooLarge = 'answer_too_large';
/** The same inside a Responses answer, where codes come from OpenAI's schema. */
const tooLargeWithin = 'invalid_prompt';
const upstreamFault = 'upstream_unavailable';
const upstreamFaultWithin = 'server_error';
const failsWithin: Ends = { ...all(upstreamFault), responses: [upstreamFault, upstreamFaultWithin] };

/** In all of these, the upstream sends more than requested. */
const answers: [string, Script, Ends, Record<FunctionName, object>?][] = [
  [
    '55 MB of log probabilities',
    large.logprobs(34_000, { choices: 8 }),
    { chat: [tooLarge, 'whole'], responses: [tooLarge, tooLargeWithin], messages: ['whole', 'whole'] },
    asked,
  ],
  [
    '55 MB of log probabilities of one choice, in few events',
    large.logprobs(34_000, { perFrame: 40 }),
    { chat: [tooLarge, 'whole'], responses: [tooLarge, tooLargeWithin], messages: ['whole', 'whole'] },
    asked,
  ],
  ['the maximum of stored log probabilities', large.logprobs(3300), all('whole'), asked],
  [
    'nearly the maximum of log probabilities beyond Latin-1',
    large.logprobs(2900, { token: '漢字' }),
    all('whole'),
    asked,
  ],
  ['13 MB of log probabilities in one document', large.logprobsInDocument, all(upstreamFault), asked],
  ['empty objects in one document', large.objectsInDocument, all(upstreamFault)],
  ['empty objects in one event', large.objectsInEvent, all(upstreamFault)],
  ['4 M characters in pieces', large.text(3_900_000, 'x'.repeat(100)), all('whole')],
  ['2 M characters beyond Latin-1', large.text(1_900_000, '漢'.repeat(100)), all('whole')],
  ['300,000 characters one by one', large.text(300_000, 'x'), all('whole')],
  ['reasoning', large.reasoning, all('whole')],
  ['40,000 annotations', large.annotations, all('whole')],
  [
    'images',
    large.images,
    {
      chat: ['whole', 'whole'],
      responses: ['unsupported_output', 'unsupported_output'],
      messages: ['whole', 'whole'],
    },
  ],
  ['60,000 details of reasoning', large.details, failsWithin],
  [
    'annotations without text',
    large.annotationsAlone,
    { chat: [tooLarge, 'whole'], responses: [tooLarge, tooLargeWithin], messages: [tooLarge, tooLarge] },
  ],
  ['arguments in pieces of two characters', large.shortArguments, all('whole')],
  [
    'alternating text and reasoning',
    large.alternating('reasoning', 'content'),
    { chat: ['whole', 'whole'], responses: [tooLarge, tooLargeWithin], messages: [tooLarge, 'whole'] },
  ],
  [
    'alternating text and refusal',
    large.alternating('refusal', 'content'),
    { chat: ['whole', 'whole'], responses: [tooLarge, tooLargeWithin], messages: ['whole', 'whole'] },
  ],
  // The first 1,024 are content, so the stream has started.
  ['100,000 calls', large.tinyCalls, failsWithin],
  ['a tool call with a name of 1 MB', large.longName, all(upstreamFault)],
  ['tool calls with ids of 1 MB', large.longIds, all('whole')],
  ['a tool call with its name in 3,000 pieces', large.namedPieces, all('whole')],
];

/** The answers that `npm test` covers: one for each bound, and a long one that is allowed. */
const selectedAnswers: Record<FunctionName, [json: string[], stream: string[]]> = {
  chat: [['55 MB of log probabilities'], ['60,000 details of reasoning']],
  responses: [
    ['annotations without text'],
    ['empty objects in one document', 'alternating text and reasoning'],
  ],
  messages: [
    ['empty objects in one event'],
    ['2 M characters beyond Latin-1', 'a tool call with a name of 1 MB'],
  ],
};
const known = new Set(answers.map(([answer]) => answer));
test('every selected answer exists', () => {
  expect(
    Object.values(selectedAnswers)
      .flat(2)
      .filter((answer) => !known.has(answer)),
  ).toEqual([]);
});
const inForm = (name: FunctionName, stream: boolean) =>
  answers.filter(([answer]) => everyForm || selectedAnswers[name][stream ? 1 : 0].includes(answer));

describe.each(['chat', 'responses', 'messages'] as const)(
  'an answer on %s ends within the memory of its function',
  (name) => {
    describe.each([false, true])('stream: %s', (stream) => {
      test.each(inForm(name, stream))('%s', async (_name, script, ends, body = usual) => {
        const { end } = await within(name, { ...body[name], stream }, { script });
        const code = /"code":"(\w+)"/.exec(end)?.[1];
        expect(code ?? 'whole').toBe(ends[name][stream ? 1 : 0]);
      });
    });
  },
);

test.each(['chat', 'responses'] as const)(
  'a call on %s with more log probabilities than can be stored is rejected before the upstream is called',
  async (name) => {
    upstream.forget();
    const limit = name === 'chat' ? { max_completion_tokens: 16_384 } : { max_output_tokens: 16_384 };
    const response = await stack.post({ ...asked[name], ...limit }, { path: paths[name] });
    expect(await response.json()).toMatchObject({
      error: { code: 'logprobs_too_many', param: 'top_logprobs' },
    });
    expect(response.status).toBe(400);
    expect(upstream.requests).toEqual([]);
  },
);
