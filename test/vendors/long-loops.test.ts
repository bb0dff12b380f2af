/**
 * Loops of twelve calls on the running stack, against doubles that drop reasoning after a changed prefix: all reasoning that
 * the vendor would keep is kept, and the uncached input stays as small as what each step adds.
 */
import type { Server } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { closeServer, listenOnLoopback, createProgramServer } from '../../infra/local/host/loopback.ts';
import { addToStack, vendorStack, type ServedModel, type VendorStack } from './vendor-stack.ts';

type Json = Record<string, unknown>;

/** One request answered by an organization at a vendor. */
interface Answered {
  gate: string;
  body: Json;
  transformations: Json[] | undefined;
  /** Uncached and total input tokens. */
  uncached: number;
  input: number;
}

/** A separate organization in front of a double, which can be down. Records its requests in `answered`. */
class Gate {
  down = false;
  readonly server: Server;

  constructor(name: string, target: () => string) {
    this.server = createProgramServer(async (request, response) => {
      const body = await textOf(request);
      if (this.down) {
        response.writeHead(503).end('{}');
        return;
      }
      const {
        host: _host,
        'content-length': _length,
        ...headers
      } = request.headers as Record<string, string>;
      const key = { authorization: `Bearer ${name}`, 'x-api-key': name };
      const url = `${target()}${request.url}`;
      const reply = await fetch(url, { method: 'POST', headers: { ...headers, ...key }, body });
      const text = await reply.text();
      if (reply.ok) answered.push({ gate: name, body: JSON.parse(body), ...factsOf(text) });
      response.writeHead(reply.status, { 'content-type': reply.headers.get('content-type') ?? '' }).end(text);
    });
  }

  url = async (): Promise<string> => `http://127.0.0.1:${await listenOnLoopback(this.server, 0)}`;
}

/** The last of each fact in the answer, streamed or not. */
function factsOf(text: string): Omit<Answered, 'gate' | 'body'> {
  const number = (name: string): number =>
    Number([...text.matchAll(new RegExp(`"${name}":(\\d+)`, 'g'))].at(-1)?.[1] ?? 0);
  const listed = [...text.matchAll(/"input_transformations":(\[[^\]]*\])/g)].at(-1)?.[1];
  const isClaude = text.includes('cache_read_input_tokens');
  const cached = number(isClaude ? 'cache_read_input_tokens' : 'cached_tokens');
  const whole = number('input_tokens') + (isClaude ? cached + number('cache_creation_input_tokens') : 0);
  return {
    transformations: listed === undefined ? undefined : (JSON.parse(listed) as Json[]),
    uncached: whole - cached,
    input: whole,
  };
}

const steps = 12;
/** The calls at which the first organization goes down, then the second. */
const [leaves, returns] = [5, 9];
/** Calls whose results contain an image. */
const pictured = new Set([3, 7]);
/** Calls after which a tool search adds a tool, which the next call uses. */
const searched = new Set([3, 7, 10]);

const prompt = 'You are a careful agent of a weather service. '.repeat(200);
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const parameters = {
  type: 'object' as const,
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const description = 'Weather of a city';
const toolOf = (name: string) => ({ type: 'function' as const, name, description, parameters, strict: true });

interface Loop {
  stack: Pick<VendorStack, 'baseUrl' | 'key' | 'client'>;
  model: string;
  /** Identifies the conversation. */
  said: string;
  /** The number of the requested call, from 1. Sets which organization is down. */
  before: (step: number) => void;
}

type Client = (loop: Loop) => Promise<number>;

const responsesClient =
  (include: boolean, changes: boolean): Client =>
  async ({ stack, model, said, before }) => {
    const input: OpenAI.Responses.ResponseInputItem[] = [
      ...(changes ? [{ role: 'developer' as const, content: prompt }] : []),
      { role: 'user', content: said },
    ];
    for (let step = 1; ; step += 1) {
      before(step);
      const request = {
        model,
        instructions: changes ? `This is turn ${step}. ${'Keep going. '.repeat(step % 3)}` : prompt,
        input: [...input],
        tools: [toolOf('weather')],
        store: false,
        ...(include && { include: ['reasoning.encrypted_content' as const] }),
      };
      const response = include
        ? await stack.client.responses.stream({ ...request, stream: true }).finalResponse()
        : await stack.client.responses.create(request);
      input.push(...(response.output as OpenAI.Responses.ResponseInputItem[]));
      const calls = response.output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
      if (calls.length === 0) return step - 1;
      for (const call of calls) {
        const image = {
          type: 'input_image' as const,
          image_url: `data:image/png;base64,${pixel}`,
          detail: 'auto' as const,
        };
        const output = pictured.has(step)
          ? [{ type: 'input_text' as const, text: 'seen' }, image]
          : `${step} degrees`;
        input.push({ type: 'function_call_output', call_id: call.call_id, output });
      }
      if (searched.has(step))
        input.push({ type: 'additional_tools', role: 'developer', tools: [toolOf(`radar_${step}`)] });
    }
  };

const chatClient: Client = async ({ stack, model, said, before }) => {
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'system', content: prompt },
    { role: 'user', content: said },
  ];
  const tools = [{ type: 'function' as const, function: { name: 'weather', description, parameters } }];
  for (let step = 1; ; step += 1) {
    before(step);
    const { choices } = await stack.client.chat.completions.create({ model, messages, tools });
    const { content = null, tool_calls: sent } = choices[0]?.message ?? {};
    const calls = sent ?? [];
    messages.push({ role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls }) });
    if (calls.length === 0) return step - 1;
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } };
    const shown = pictured.has(step) ? [{ type: 'text', text: 'seen' }, image] : `${step} degrees`;
    for (const { id } of calls) messages.push({ role: 'tool', tool_call_id: id, content: shown as string });
  }
};

const messagesClient: Client = async ({ stack, model, said, before }) => {
  const baseURL = stack.baseUrl.replace(/\/v1$/, '');
  const client = new Anthropic({ baseURL, apiKey: stack.key, maxRetries: 0 });
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: said }];
  const tools = [{ name: 'weather', description, input_schema: parameters }];
  for (let step = 1; ; step += 1) {
    before(step);
    const request = {
      model,
      max_tokens: 4000,
      system: prompt,
      messages,
      tools,
      thinking: { type: 'adaptive' as const },
      cache_control: { type: 'ephemeral' as const },
    };
    const { content } = await client.messages.stream(request).finalMessage();
    messages.push({ role: 'assistant', content });
    const calls = content.filter((block) => block.type === 'tool_use');
    if (calls.length === 0) return step - 1;
    const image = {
      type: 'image' as const,
      source: { type: 'base64' as const, media_type: 'image/png' as const, data: pixel },
    };
    const shown = pictured.has(step) ? [{ type: 'text' as const, text: 'seen' }, image] : `${step} degrees`;
    const results = calls.map(({ id }) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: shown,
    }));
    messages.push({ role: 'user', content: results });
  }
};

/** The returned reasoning in a body. */
const reasoningIn = (body: Json): number =>
  JSON.stringify(body).match(/"type":"(reasoning|thinking)",/g)?.length ?? 0;

const answered: Answered[] = [];
let stack: Awaited<ReturnType<typeof vendorStack>>;
const vendorOf: Record<string, string> = { 'gpt-6.2-astra': 'openai', 'claude-opus-5-5': 'anthropic' };
const gates = Object.values(vendorOf).map((vendor) =>
  ['one', 'two'].map((name) => new Gate(name, () => stack.vendors.url(vendor))),
);
const namesOf = (model: string): string => `long-${model}`;

addToStack(async () => {
  const models = Object.entries(vendorOf).flatMap(([upstream, vendor], at) =>
    (gates[at] ?? []).map(async (gate, index): Promise<ServedModel> => {
      const model = namesOf(upstream);
      const own = { id: `${vendor}-${index}`, endpoint: await gate.url(), priority: 2 - index };
      const type = vendor === 'openai' ? { type: 'openai', dialect: 'responses' } : { type: 'anthropic' };
      return { model, upstream, vendor, row: { ...type, ...own } };
    }),
  );
  return { models: await Promise.all(models) };
});
beforeAll(async () => {
  stack = await vendorStack();
}, 60_000);
afterAll(async () => {
  await Promise.all(gates.flat().map(({ server }) => closeServer(server)));
});
beforeEach(() => {
  answered.length = 0;
  for (const gate of gates.flat()) gate.down = false;
});

describe.each(Object.keys(vendorOf))(
  'a loop of twelve calls of %s, through another organization and back',
  (upstream) => {
    const clients: [string, Client][] = [
      ['Responses, with encrypted reasoning', responsesClient(true, upstream.startsWith('gpt'))],
      ['Responses, without', responsesClient(false, upstream.startsWith('gpt'))],
      ['chat', chatClient],
      ['Messages', messagesClient],
    ];
    it.each(clients)('by a client of %s keeps its reasoning and its cache', async (way, client) => {
      const at = Object.keys(vendorOf).indexOf(upstream);
      const [first, second] = gates[at] ?? [];
      const adds = way.startsWith('Responses');
      const lines = Array.from({ length: steps }, (_, index) => {
        const name = adds && searched.has(index) ? `radar_${index}` : 'weather';
        return `call ${name} {"city":"Paris"}`;
      });
      const turns = await client({
        stack,
        model: namesOf(upstream),
        said: `explain: ${way} ${upstream}\n${lines.join('\n')}`,
        before(step) {
          if (first) first.down = step >= leaves && step < returns;
          if (second) second.down = step >= returns;
        },
      });
      expect(turns).toBe(steps);
      expect(answered.map(({ gate }) => gate)).toEqual(
        Array.from({ length: steps + 1 }, (_, index) =>
          index + 1 >= leaves && index + 1 < returns ? 'two' : 'one',
        ),
      );
      // A body that is sent unchanged also contains the other organization's thinking, which the vendor omits.
      const isNative = way === 'Messages' && upstream.startsWith('claude');
      const reasons = answered.flatMap(({ transformations = [] }) =>
        transformations.map(({ reason }) => reason),
      );
      expect([...new Set(reasons)]).toEqual(isNative ? ['organization_binding_mismatch'] : []);
      // All earlier answers of the organization itself.
      const own = answered.map(
        ({ gate }, index) => answered.slice(0, index).filter((one) => one.gate === gate).length,
      );
      const kept = answered.map(
        ({ body, transformations = [] }) => reasoningIn(body) - transformations.length,
      );
      expect(kept).toEqual(own);
      const flat = answered.filter((_, index) => ![1, leaves, returns].includes(index + 1));
      expect(Math.max(...flat.map(({ uncached }) => uncached))).toBeLessThan(600);
      expect(Math.min(...flat.map(({ input }) => input))).toBeGreaterThan(2000);
    });
  },
);

describe('a client that changes the prefix of its reasoning', () => {
  const model = namesOf('gpt-6.2-astra');
  const include = ['reasoning.encrypted_content' as const];
  /** Its first turn, and the part that it sends next. */
  const first = async (user: string) => {
    const question = { role: 'user' as const, content: `the weather? ${user} ${prompt}` };
    const request = { model, include, store: false, tools: [toolOf('weather')], safety_identifier: user };
    const { output } = await stack.client.responses.create({ ...request, input: [question] });
    const [call] = output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
    const reasoning = output.find(({ type }) => type === 'reasoning');
    const result = { type: 'function_call_output' as const, call_id: call?.call_id ?? '', output: 'sunny' };
    return {
      request,
      question,
      reasoning,
      turn: [...output, result] as OpenAI.Responses.ResponseInputItem[],
    };
  };

  it.each([true, false])(
    'gets its own item for reasoning that the vendor omitted (stream: %s), and the log has the reason',
    async (stream) => {
      const { request, question, reasoning, turn } = await first(`prefix ${stream}`);
      const input = [{ ...question, content: `${question.content} Shortened.` }, ...turn];
      const answer = stream
        ? await stack.client.responses.stream({ ...request, input, stream: true }).finalResponse()
        : await stack.client.responses.create({ ...request, input });
      expect(answer).toMatchObject({
        input_transformations: [
          { type: 'reasoning', action: 'removed', reason: 'prefix_mismatch', id: reasoning?.id },
        ],
      });
      const told = () =>
        stack
          .log()
          .split('\n')
          .filter((line) => line.includes('"input_transformations"'));
      const logged = { input_transformations: { prefix_mismatch: 1 }, end_user: `prefix ${stream}` };
      const linesOf = () => told().map((line): unknown => JSON.parse(line.slice(line.indexOf('{'))));
      await expect.poll(() => linesOf().at(-1)).toMatchObject(logged);
    },
  );

  it('gets no such item if the result of an asynchronous tool arrives two turns later', async () => {
    const tools = [{ ...toolOf('weather'), async: true }];
    const request = { model, include, store: false, tools };
    const input: OpenAI.Responses.ResponseInputItem[] = [
      { role: 'user', content: `the weather later? ${prompt}` },
    ];
    const said = async (choice: 'auto' | 'none', ...more: OpenAI.Responses.ResponseInputItem[]) => {
      input.push(...more);
      const answer = await stack.client.responses.create({ ...request, input, tool_choice: choice });
      input.push(...(answer.output as OpenAI.Responses.ResponseInputItem[]));
      return answer;
    };
    const [call] = (await said('auto')).output.flatMap((item) =>
      item.type === 'function_call' ? [item] : [],
    );
    expect(call?.async).toBe(true);
    await said('none', { role: 'user', content: 'And meanwhile?' });
    await said('none', { role: 'user', content: 'And now?' });
    const result = { type: 'function_call_output' as const, call_id: call?.call_id ?? '', output: 'sunny' };
    const last = await said('none', result);
    expect(last).toMatchObject({ input_transformations: [] });
    expect(reasoningIn(answered.at(-1)?.body ?? {})).toBe(3);
  });

  it('gets an item for another end user, and none without a change', async () => {
    const { request, question, turn } = await first('alice');
    const input = [question, ...turn];
    const same = await stack.client.responses.create({ ...request, input });
    expect(same).toMatchObject({ input_transformations: [] });
    const other = await stack.client.responses.create({ ...request, input, safety_identifier: 'bob' });
    expect(other).toMatchObject({ input_transformations: [{ reason: 'end_user_mismatch' }] });
  });
});
