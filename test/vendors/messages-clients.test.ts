/** POST /v1/messages by client libraries, on the running stack, against the strict doubles of vendors. */
import { createAnthropic } from '@ai-sdk/anthropic';
import Anthropic, { APIError } from '@anthropic-ai/sdk';
import type {
  ContentBlockParam,
  Message,
  MessageCreateParams,
  MessageParam,
} from '@anthropic-ai/sdk/resources';
import Anthropic0 from '@anthropic-ai/sdk-0';
import { generateText, isStepCount, streamText, tool } from 'ai';
import { beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { keyHash } from '../../shared/wire/ids.ts';
import { addToStack, servedModels, vendorStack } from './vendor-stack.ts';

const haiku = { model: 'claude-haiku-4-5', vendor: 'anthropic', row: { type: 'anthropic' } };
const models = [...servedModels, haiku];

const keys = { poor: 'sk-test-poor', narrow: 'sk-test-narrow', slow: 'sk-test-slow' };
const rows = [
  { table: 'keys' as const, row: { hash: keyHash(keys.poor), account: 'poor' } },
  { table: 'keys' as const, row: { hash: keyHash(keys.narrow), account: 'test', models: ['gpt-5.6'] } },
  { table: 'keys' as const, row: { hash: keyHash(keys.slow), account: 'test', rpm: 1 } },
  {
    table: 'charges' as const,
    row: { id: 9, type: 'token-billing', models: [haiku.model], input: 0.002, output: 0.008 },
  },
];

addToStack(() => ({ models: [haiku], rows }));

let stack: Awaited<ReturnType<typeof vendorStack>>;
let baseURL: string;
beforeAll(async () => {
  stack = await vendorStack();
  baseURL = stack.baseUrl.replace(/\/v1$/, '');
}, 60_000);

const newest = (options: object = {}): Anthropic =>
  new Anthropic({ baseURL, apiKey: stack.key, maxRetries: 0, logLevel: 'off', ...options });
/** Its types differ, but the methods that tests call are the same. */
const older = (): Anthropic =>
  new Anthropic0({ baseURL, apiKey: stack.key, maxRetries: 0, logLevel: 'off' }) as unknown as Anthropic;
const clients = [
  { major: 1, client: newest },
  { major: 0, client: older },
];

/** What a vendor rejected or only tolerated in the relay's requests, starting at a request. */
const objections = (vendor: string, from: number): object[] =>
  stack.vendors
    .requests(vendor)
    .slice(from)
    .filter(({ status, notes }) => status >= 400 || notes.length > 0)
    .map(({ path, status, rule, notes }) => ({ path, status, rule, notes }));
const seenBy = (vendor: string): number => stack.vendors.requests(vendor).length;

const weather = {
  name: 'weather',
  description: 'Weather of a city',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
};
type Asked = Partial<MessageCreateParams> & Pick<MessageCreateParams, 'model' | 'messages'>;

async function ask(client: Anthropic, asked: Asked, stream: boolean): Promise<Message> {
  const params = { max_tokens: 4000, ...asked };
  if (stream) return client.messages.stream(params).finalMessage();
  return client.messages.create({ ...params, stream: false });
}

const thinkingOf = (model: string): MessageCreateParams['thinking'] =>
  model === haiku.model ? { type: 'enabled', budget_tokens: 1024 } : { type: 'adaptive' };

const callsIn = ({ content }: Message) =>
  content.flatMap((block) => (block.type === 'tool_use' ? [block] : []));
const textOf = ({ content }: Message): string =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('');
const user = (content: MessageParam['content']): MessageParam => ({ role: 'user', content });

/** Calls until no tool is called. Returns the content of the answers unchanged. */
async function loop(client: Anthropic, model: string, messages: MessageParam[], stream: boolean) {
  const asked: Asked = { model, messages, tools: [weather], thinking: thinkingOf(model) };
  const calls: string[] = [];
  for (let turn = 0; turn < 12; turn += 1) {
    const message = await ask(client, asked, stream);
    messages.push({ role: 'assistant', content: message.content as ContentBlockParam[] });
    const called = callsIn(message);
    if (called.length === 0) return { turns: turn, calls, text: textOf(message), message };
    expect(message.stop_reason).toBe('tool_use');
    calls.push(...called.map(({ id }) => id));
    messages.push(
      user(
        called.map(({ id }) => ({
          type: 'tool_result',
          tool_use_id: id,
          content: `${calls.length} degrees`,
        })),
      ),
    );
  }
  throw new Error('the loop does not end');
}

describe.each(clients)('@anthropic-ai/sdk $major', ({ major, client }) => {
  it.each(models.map((one, index) => ({ ...one, stream: index % 2 === major })))(
    '$model (stream: $stream): three turns of three calls at once, with thinking',
    async ({ model, vendor, stream }) => {
      const before = seenBy(vendor);
      const said = `turns=3 three in parallel, explain: the weather in Paris? ${major} ${stream}`;
      const { turns, calls, text, message } = await loop(client(), model, [user(said)], stream);
      expect({ turns, calls: new Set(calls).size }).toEqual({ turns: 3, calls: 9 });
      expect(text).toContain('9 degrees');
      expect(message).toMatchObject({ type: 'message', role: 'assistant', model, stop_reason: 'end_turn' });
      expect(message.usage.output_tokens).toBeGreaterThan(0);
      expect(objections(vendor, before)).toEqual([]);
    },
  );
});

describe('the AI SDK by its provider of Anthropic', () => {
  it.each(models.map((one, index) => ({ ...one, stream: index % 2 === 0 })))(
    '$model (stream: $stream): three turns with tools and thinking',
    async ({ model, vendor, stream }) => {
      const before = seenBy(vendor);
      const asked: string[] = [];
      const thinking: Record<string, string | number> =
        model === haiku.model ? { type: 'enabled', budgetTokens: 1024 } : { type: 'adaptive' };
      const options = {
        model: createAnthropic({ baseURL: stack.baseUrl, apiKey: stack.key })(model),
        prompt: `turns=3 explain: the weather in Paris? AI SDK ${stream}`,
        maxRetries: 0,
        maxOutputTokens: 4000,
        providerOptions: { anthropic: { thinking } },
        tools: {
          weather: tool({
            inputSchema: z.object({ city: z.string() }),
            execute: ({ city }) => `${asked.push(city)} degrees`,
          }),
        },
        stopWhen: isStepCount(12),
      };
      const answer = stream ? streamText(options) : await generateText(options);
      if ('consumeStream' in answer) await answer.consumeStream();
      expect(asked).toEqual(Array(3).fill('Paris'));
      expect(await answer.text).toContain('3 degrees');
      // It sends features that Bedrock does not support.
      const [first] = objections(vendor, before);
      expect(first).toEqual(vendor === 'bedrock' ? expect.objectContaining({ rule: 'betas' }) : undefined);
    },
  );
});

it('continues with another vendor at each question, with the thinking of all of them in one history', async () => {
  const order = [
    'claude-opus-5-5',
    'gpt-5.6',
    'claude-opus-5-5',
    'gemini-3-pro-preview',
    'gpt-5.6',
    'deepseek-v4-pro',
    'claude-opus-5-5',
    'gemini-3-pro-preview',
  ];
  const messages: MessageParam[] = [];
  const before = Object.fromEntries(servedModels.map(({ vendor }) => [vendor, seenBy(vendor)]));
  for (const [index, model] of order.entries()) {
    messages.push(user(`turns=2 three in parallel, explain: question ${index}`));
    const { turns, text } = await loop(newest(), model, messages, index % 2 === 0);
    expect({ model, turns, text }).toEqual({ model, turns: 2, text: expect.stringContaining('6 degrees') });
  }
  for (const { vendor } of servedModels) {
    const statuses = stack.vendors
      .requests(vendor)
      .slice(before[vendor])
      .map(({ status }) => status);
    expect({ vendor, refused: statuses.filter((status) => status >= 400) }).toEqual({ vendor, refused: [] });
  }
});

const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image = {
  type: 'image' as const,
  source: { type: 'base64' as const, media_type: 'image/png' as const, data: png },
};
const pdf = Buffer.from('%PDF-1.4\n1 0 obj<</Type/Page>>endobj\ntrailer<<>>\n%%EOF').toString('base64');
const documents: ContentBlockParam[] = [
  { type: 'document', title: 'a.pdf', source: { type: 'base64', media_type: 'application/pdf', data: pdf } },
  { type: 'document', title: 'notes', source: { type: 'text', media_type: 'text/plain', data: 'the notes' } },
];

describe.each(models)('input for $model', ({ model, vendor }) => {
  const said = (text: string): ContentBlockParam => ({ type: 'text', text });

  it('may contain pictures, also as the result of a tool', async () => {
    const before = seenBy(vendor);
    const messages = [user([image, said('the weather?')])];
    const asked: Asked = { model, tools: [weather], messages, thinking: thinkingOf(model) };
    const first = await ask(newest(), asked, false);
    const [call] = callsIn(first);
    const result = { type: 'tool_result' as const, tool_use_id: call?.id ?? '', content: [image] };
    messages.push({ role: 'assistant', content: first.content as ContentBlockParam[] }, user([result]));
    await ask(newest(), asked, true);
    expect(objections(vendor, before)).toEqual([]);
  });

  it('may contain a tool that a search of the client found', async () => {
    const before = seenBy(vendor);
    const messages = [user('turns=1 search for the weather?')];
    const search = { ...weather, name: 'ToolSearch' };
    const asked: Asked = { model, tools: [search], messages, thinking: thinkingOf(model) };
    const first = await ask(newest(), asked, true);
    const content = [{ type: 'tool_reference' as const, tool_name: 'weather' }];
    const found = callsIn(first).map(({ id }) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content,
    }));
    messages.push({ role: 'assistant', content: first.content as ContentBlockParam[] }, user(found));
    const tools = [search, { ...weather, defer_loading: true }];
    const client = newest({ defaultHeaders: { 'anthropic-beta': 'tool-search-tool-2025-10-19' } });
    const second = await ask(client, { ...asked, tools }, true);
    expect(second.stop_reason).toBe('end_turn');
    expect(objections(vendor, before)).toEqual([]);
  });

  it('may contain documents', async () => {
    const before = seenBy(vendor);
    const { stop_reason: reason } = await ask(
      newest(),
      { model, messages: [user([...documents, said('so?')])] },
      true,
    );
    expect(reason).toBe('end_turn');
    expect(objections(vendor, before)).toEqual([]);
  });

  it.each([true, false])(
    'may contain stop sequences, and the answer names the matched one (stream: %s)',
    async (stream) => {
      const messages = [user('one two HALT three')];
      // Chat upstreams stop at a sequence without naming it.
      const isNamed = /gpt-5|claude/.test(model);
      const stop_sequences = isNamed ? ['NEVER', 'HALT'] : ['HALT'];
      const answer = await ask(newest(), { model, messages, stop_sequences }, stream);
      expect(answer).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'HALT' });
      expect(textOf(answer)).toMatch(/one two $/);
    },
  );

  it('may forbid parallel tool calls', async () => {
    const choice = { type: 'auto' as const, disable_parallel_tool_use: true };
    const messages = [user('three in parallel')];
    const answer = await ask(newest(), { model, messages, tools: [weather], tool_choice: choice }, true);
    expect(callsIn(answer)).toHaveLength(1);
  });
});

async function refused(call: Promise<unknown>): Promise<APIError> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(APIError);
  return error as APIError;
}

describe('an error', () => {
  const hello = (model: string, text = 'turns=0 hello'): Asked => ({ model, messages: [user(text)] });
  it.each([
    [401, 'authentication_error', 'sk-unknown', hello(haiku.model)],
    [402, 'billing_error', keys.poor, hello(haiku.model)],
    [403, 'permission_error', keys.narrow, hello(haiku.model)],
    [404, 'not_found_error', undefined, hello('nobody-serves-it')],
    [400, 'invalid_request_error', undefined, { ...hello(haiku.model), messages: [] }],
    // The vendor's own words: clients use them to shorten a conversation and to omit thinking.
    [400, 'invalid_request_error', undefined, hello(haiku.model, 'window')],
    [529, 'overloaded_error', undefined, hello('kimi-k2.6', 'throttle')],
    [529, 'overloaded_error', undefined, hello('claude-opus-5-5', 'overload')],
  ])('of status %i is a %s', async (status, type, apiKey, asked) => {
    for (const stream of [false, true]) {
      const error = await refused(ask(newest(apiKey === undefined ? {} : { apiKey }), asked, stream));
      expect({ status: error.status, type: error.type }).toEqual({ status, type });
      expect(error.requestID).toMatch(/^[0-9a-z]{20,}$/);
    }
  });

  it('for a key with too many calls is a rate_limit_error with the seconds to wait', async () => {
    const client = newest({ apiKey: keys.slow });
    await ask(client, hello('gpt-5.6'), true);
    const error = await refused(ask(client, hello('gpt-5.6'), true));
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error' });
    expect(error.headers?.get('retry-after')).toMatch(/^\d+$/);
  });

  it.each(
    ['cut', 'hang up'].flatMap((how) =>
      ['gpt-4.1', 'us.anthropic.claude-opus-5-5-v1:0'].map((model) => ({ how, model })),
    ),
  )(
    'in mid-stream ($how) of $model is an event, and the message has no normal end',
    async ({ how, model }) => {
      const stream = newest().messages.stream({ max_tokens: 4000, ...hello(model, `turns=0 ${how} long`) });
      const types: string[] = [];
      stream.on('streamEvent', ({ type }) => types.push(type));
      const error = await refused(stream.finalMessage());
      expect(error.type).toBe('api_error');
      expect(types[0]).toBe('message_start');
      expect(types).not.toContain('message_delta');
    },
  );
});
