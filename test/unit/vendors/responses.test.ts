import { expect, test } from 'vitest';
import { responsesTool, user } from './examples.ts';
import { doubleOf, jsonOf, send, type Json } from './rig.ts';

const include = ['reasoning.encrypted_content'];
const asked = (said: string, more: Json = {}, key = 'Bearer sk-one') => ({
  path: '/v1/responses',
  headers: { authorization: key },
  body: { model: 'gpt-5.6', store: false, include, input: [user(said)], ...more },
});
const outputOf = (reply: Json): Json[] => reply['output'] as Json[];

/** A first turn with one call, and its second turn with changed items. */
async function secondTurn(change: (items: Json[]) => Json[], key?: string) {
  const double = doubleOf('openai');
  const first = outputOf(jsonOf(await send(double, asked('weather', { tools: [responsesTool] }))));
  const call = first.find(({ type }) => type === 'function_call')!;
  const result = { type: 'function_call_output', call_id: call['call_id'], output: 'sunny' };
  const input = [user('weather'), ...change(first), result];
  return send(double, asked('', { tools: [responsesTool], input }, key));
}

const altered = (items: Json[]): Json[] =>
  items.map((item) =>
    item['encrypted_content']
      ? Object.assign({}, item, { encrypted_content: `${item['encrypted_content'] as string}x` })
      : item,
  );
const withoutReasoning = (items: Json[]): Json[] => items.filter(({ type }) => type !== 'reasoning');
const withoutIds = (items: Json[]): Json[] => items.map(({ id: _id, ...item }) => item);

test.each([
  ['as it was', (items: Json[]) => items, undefined],
  ['without item ids, as Codex sends it', withoutIds, undefined],
])('reasoning is accepted back %s', async (_how, change) => {
  const reply = await secondTurn(change);
  expect({ status: reply.status, notes: reply.notes }).toEqual({ status: 200, notes: [] });
});

test('altered reasoning and reasoning of another organisation are rejected', async () => {
  expect((await secondTurn(altered)).rule).toBe('encrypted-content');
  const foreign = await secondTurn((items) => items, 'Bearer sk-two');
  expect(jsonOf(foreign)).toMatchObject({
    error: {
      code: 'invalid_encrypted_content',
      message: expect.stringContaining('organization_id did not match'),
    },
  });
});

test('a call without its reasoning is rejected if it has its item id, and otherwise noted', async () => {
  expect((await secondTurn(withoutReasoning)).rule).toBe('reasoning-required');
  const reply = await secondTurn((items) => withoutIds(withoutReasoning(items)));
  expect(reply.notes).toEqual(['a call without the reasoning of its turn']);
});

test('encrypted content is returned only if the request includes it, a summary only on request', async () => {
  const plain = outputOf(jsonOf(await send(doubleOf('openai'), asked('hello', { include: [] }))));
  expect(plain[0]).toEqual({ id: expect.any(String), type: 'reasoning', summary: [] });
  const shown = outputOf(
    jsonOf(await send(doubleOf('openai'), asked('hello', { reasoning: { summary: 'auto' } }))),
  );
  expect(shown[0]).toMatchObject({
    summary: [{ type: 'summary_text' }],
    encrypted_content: expect.any(String),
  });
});

const bindingOf = (more: Json = {}, key?: string) =>
  asked('', { model: 'gpt-6.2-astra', tools: [responsesTool], safety_identifier: 'ann', ...more }, key);

/** A first turn with one call at GPT-6.2, and what its second turn reports about its reasoning. */
async function boundTurn(more: Json, change: (input: Json[]) => Json[] = (input) => input, key?: string) {
  const double = doubleOf('openai');
  const input = [user('weather '.repeat(600))];
  const first = outputOf(jsonOf(await send(double, bindingOf({ input }))));
  const call = first.find(({ type }) => type === 'function_call')!;
  const result = { type: 'function_call_output', call_id: call['call_id'], output: 'sunny' };
  const second = await send(double, bindingOf({ input: change([...input, ...first, result]), ...more }, key));
  const { input_transformations: told, usage } = jsonOf(second);
  const reasons = (told as Json[]).map(({ reason, id }) => [reason, id === first[0]?.['id']]);
  return {
    reasons,
    usage: usage as { input_tokens: number; input_tokens_details: { cached_tokens: number } },
  };
}

test('since GPT-6.2 reasoning behind another beginning or from others is dropped and reported, but not rejected', async () => {
  const edited = (input: Json[]) => input.map((item, at) => (at === 0 ? user('weather') : item));
  const added = { type: 'additional_tools', role: 'developer', tools: [{ ...responsesTool, name: 'more' }] };
  expect((await boundTurn({})).reasons).toEqual([]);
  expect((await boundTurn({}, withoutIds)).reasons).toEqual([]);
  expect((await boundTurn({}, (input) => [...input, added])).reasons).toEqual([]);
  expect((await boundTurn({ instructions: 'Be brief.' })).reasons).toEqual([]);
  expect((await boundTurn({}, edited)).reasons).toEqual([['prefix_mismatch', true]]);
  expect((await boundTurn({ tools: [] })).reasons).toEqual([['prefix_mismatch', true]]);
  expect((await boundTurn({ safety_identifier: 'bob' })).reasons).toEqual([['end_user_mismatch', true]]);
  expect((await boundTurn({ model: 'gpt-6.2-sol' })).reasons).toEqual([['model_mismatch', true]]);
  const elsewhere = await boundTurn({}, undefined, 'Bearer sk-two');
  expect(elsewhere.reasons).toEqual([['organization_mismatch', true]]);
});

test('since GPT-6.2 instructions count, and are never read from the cache', async () => {
  const { usage: plain } = await boundTurn({});
  const { usage } = await boundTurn({ instructions: 'Be brief. '.repeat(40) });
  expect(usage.input_tokens_details).toEqual(plain.input_tokens_details);
  expect(usage.input_tokens - plain.input_tokens).toBe(100);
});

test.each(['none', 'minimal'])('GPT-6.2 rejects the effort %s', async (effort) => {
  const reply = await send(doubleOf('openai'), bindingOf({ input: 'hello', reasoning: { effort } }));
  expect(reply.rule).toBe('efforts');
});
