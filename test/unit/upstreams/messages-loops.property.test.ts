import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Vendor } from '../../../infra/local/vendors/vendor.ts';
import { createAnthropicDouble } from '../../../infra/local/vendors/anthropic.ts';
import { ChunksToCompletion } from '../../../shared/endpoints/chat/fold.ts';
import { BodyEvents } from '../../../shared/upstreams/body-events.ts';
import type { RequestSettings } from '../../../shared/upstreams/dialect.ts';
import { messages as dialect } from '../../../shared/upstreams/dialects/messages/request.ts';
import type { ChatMessage, ChatRequest } from '../../../shared/wire/canonical-call.ts';
import type { AssistantMessage } from '../../../shared/wire/chat-response.ts';
import type { JsonRecord } from '../../../shared/wire/json.ts';
import type { StatePart } from '../../../shared/wire/turn-state.ts';
import { chatCall, readerContext, settingsWith } from '../../support/dialect-parts.ts';

const limits = { answerBytesMax: 1e6, documentBytesMax: 1e6, lineLengthMax: 1e6 };
type States = Map<ChatMessage, readonly StatePart[]>;

/** Tools, system and messages of a request, without breakpoints and closing brackets. */
function prefixOf({ tools, system, messages }: JsonRecord): string {
  const text = JSON.stringify({ tools, system, messages }, (name, value: unknown) =>
    name === 'cache_control' ? undefined : value,
  );
  return text.replace(/[\]}"]+$/, '');
}

interface Conversation {
  request: ChatRequest;
  states: States;
  settings: Partial<RequestSettings>;
}

/** Makes one call to the double, which rejects what the vendor rejects. */
async function ask(vendor: Vendor, { request, states, settings: own }: Conversation) {
  const settings = settingsWith({ states, ...own });
  const sent = dialect.body(chatCall(request), settings);
  const headers = { 'x-api-key': 'k', ...dialect.headers?.(settings) };
  const reply = await vendor.serve({
    method: 'POST',
    path: '/v1/messages',
    headers,
    text: JSON.stringify(sent.body),
  });
  const bytes = reply.frames.map((frame) =>
    typeof frame === 'string' ? new TextEncoder().encode(frame) : frame,
  );
  expect({ status: reply.status, rule: reply.rule, notes: reply.notes ?? [] }).toEqual({
    status: 200,
    notes: [],
  });
  const body = new BodyEvents(limits);
  const reader = new dialect.Reader(readerContext({ sent }));
  const fold = new ChunksToCompletion();
  const events = [...bytes.flatMap((piece) => body.push(piece)), ...body.end()];
  for (const chunk of [...events.flatMap((event) => reader.push(event)), ...reader.end()]) fold.push(chunk);
  const { choices } = fold.completion();
  const [choice] = choices;
  if (!choice) throw new Error('no choice');
  return { sent, choice, usage: reader.report().usage, state: reader.report().state };
}

/** An answer as clients send it back. */
const sentBack = (message: AssistantMessage): ChatMessage =>
  JSON.parse(JSON.stringify(message)) as ChatMessage;

const tools = ['weather', 'clock'].map((name) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { place: { type: 'string' } } } },
}));

/** Runs a tool loop to its end. Returns the sent bodies and the cached tokens of each call. */
async function loop(said: string, request: Partial<ChatRequest>, settings: Partial<RequestSettings>) {
  const vendor = createAnthropicDouble();
  const messages: ChatMessage[] = [
    { role: 'system', content: 'You look things up. '.repeat(400) },
    { role: 'user', content: said },
  ];
  const states: States = new Map();
  const bodies: JsonRecord[] = [];
  const cached: number[] = [];
  for (let turn = 0; turn < 12; turn += 1) {
    const conversation = {
      request: { model: 'm', messages: [...messages], tools, ...request },
      states,
      settings,
    };
    const { sent, choice, usage, state } = await ask(vendor, conversation);
    bodies.push(sent.body);
    cached.push(usage?.cached ?? 0);
    const message = sentBack(choice.message);
    if (state) states.set(message, state);
    messages.push(message);
    const calls = choice.message.tool_calls ?? [];
    if (calls.length === 0) return { bodies, cached, states, finish: choice.finish_reason };
    for (const { id } of calls) messages.push({ role: 'tool', tool_call_id: id, content: `sunny at ${id}` });
  }
  throw new Error('the loop does not end');
}

describe('a tool loop with the strict double', () => {
  const models = ['claude-opus-5-5', 'claude-fable-5-1', 'claude-sonnet-4-6', 'claude-haiku-4-5'];
  const words = fc.subarray(['in parallel', 'explain', 'interleave', 'redacted']);
  const efforts = fc.constantFrom(undefined, 'none', 'low', 'high', 'max');

  it('is never rejected, grows only at its end, and returns thinking byte for byte', async () => {
    const model = fc.constantFrom(...models);
    await fc.assert(
      fc.asyncProperty(model, words, efforts, fc.boolean(), async (name, asked, effort, stream) => {
        const said = `weather turns=4 ${asked.join(' ')}`;
        const { bodies, states, cached, finish } = await loop(
          said,
          { reasoning_effort: effort },
          { model: name, stream },
        );
        expect(finish).toBe('stop');
        expect(bodies).toHaveLength(5);
        const prefixes = bodies.map(prefixOf);
        for (const [index, prefix] of prefixes.slice(1).entries())
          expect(prefix.startsWith(prefixes[index] ?? '')).toBe(true);
        const last = JSON.stringify(bodies.at(-1));
        const opaque = [...states.values()].slice(0, -1).flat();
        for (const part of opaque) if ('opaque' in part) expect(last).toContain(JSON.stringify(part.opaque));
        if (name !== 'claude-haiku-4-5') expect(cached.slice(1).every((count) => count > 0)).toBe(true);
      }),
      { numRuns: 25 },
    );
  });

  it('continues after a call with other tools, which invalidates bound thinking', async () => {
    const vendor = createAnthropicDouble();
    const settings = { model: 'claude-opus-5-5' };
    const first: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'weather' }], tools };
    const { choice, state } = await ask(vendor, { request: first, states: new Map(), settings });
    expect(state).toBeDefined();
    const message = sentBack(choice.message);
    const [call] = choice.message.tool_calls ?? [];
    const result: ChatMessage = { role: 'tool', tool_call_id: call?.id, content: 'sunny' };
    const forced = {
      ...first,
      messages: [...first.messages, message, result],
      tool_choice: { type: 'function', function: { name: 'clock' } },
    };
    const states: States = new Map(state ? [[message, state]] : []);
    const sent = dialect.body(chatCall(forced), settingsWith({ ...settings, states }));
    const headers = { 'x-api-key': 'k', ...dialect.headers?.(settingsWith(settings)) };
    const text = JSON.stringify(sent.body);
    const reply = await vendor.serve({ method: 'POST', path: '/v1/messages', headers, text });
    expect(reply).toMatchObject({ status: 200, notes: ['thinking of another conversation'] });
    expect(sent.toolChoice).toBe('auto');
  });
});

describe('any conversation on Messages', () => {
  const words = fc.constantFrom('', ' ', 'a', 'b c', 'ü👋"}]');
  const part = fc.oneof(
    words.map((text) => ({ type: 'text', text })),
    fc.constant({ type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }),
  );
  const content = fc.oneof(words, fc.array(part, { maxLength: 3 }));
  const aside = fc.record({ role: fc.constantFrom('user' as const, 'developer' as const), content });
  const calls = fc.array(fc.constantFrom('a', 'f:0', 'x'.repeat(70)), { maxLength: 3 });
  const thinking = fc.option(fc.record({ type: fc.constant('thinking'), thinking: words, signature: words }));
  const turn = fc.record({
    asides: fc.array(aside, { maxLength: 3 }),
    text: words,
    calls,
    thinking,
  });
  const system = fc.array(fc.record({ role: fc.constant('system' as const), content: words }), {
    maxLength: 2,
  });

  it('only grows: each turn begins with the previous one', () => {
    fc.assert(
      fc.property(system, fc.array(turn, { minLength: 2, maxLength: 6 }), (leading, turns) => {
        const messages: ChatMessage[] = [...leading, { role: 'user', content: 'hi' }];
        const states: States = new Map();
        const sent: string[] = [];
        for (const { asides, text, calls: ids, thinking: opaque } of turns) {
          const body = dialect.body(
            chatCall({ model: 'm', messages: [...messages], tools }),
            settingsWith({ states: new Map(states) }),
          ).body;
          sent.push(prefixOf(body));
          const toolCalls = ids.map((id, index) => ({
            id: `${id}${index}`,
            type: 'function',
            function: { name: 'clock', arguments: '{"a":1}' },
          }));
          const message: ChatMessage = {
            role: 'assistant',
            content: text,
            ...(ids.length > 0 && { tool_calls: toolCalls }),
          };
          const parts = toolCalls.map((_, index) => ({ call: index }));
          if (opaque) states.set(message, [{ opaque }, { text: text.length }, ...parts]);
          messages.push(
            message,
            ...toolCalls.map(({ id }): ChatMessage => ({ role: 'tool', tool_call_id: id, content: 'r' })),
            ...asides,
          );
        }
        for (const [index, prefix] of sent.slice(1).entries())
          expect(prefix.startsWith(sent[index] ?? '')).toBe(true);
      }),
      { numRuns: 200 },
    );
  });
});
