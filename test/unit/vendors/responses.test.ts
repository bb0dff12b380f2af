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

/** A first turn with one call, and its second turn with the items changed. */
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
])('reasoning comes back %s', async (_how, change) => {
  const reply = await secondTurn(change);
  expect({ status: reply.status, notes: reply.notes }).toEqual({ status: 200, notes: [] });
});

test('altered reasoning, and that of another organisation, is refused', async () => {
  expect((await secondTurn(altered)).rule).toBe('encrypted-content');
  const foreign = await secondTurn((items) => items, 'Bearer sk-two');
  expect(jsonOf(foreign)).toMatchObject({
    error: {
      code: 'invalid_encrypted_content',
      message: expect.stringContaining('organization_id did not match'),
    },
  });
});

test('a call without its reasoning is refused by its item id, else noted', async () => {
  expect((await secondTurn(withoutReasoning)).rule).toBe('reasoning-required');
  const reply = await secondTurn((items) => withoutIds(withoutReasoning(items)));
  expect(reply.notes).toEqual(['a call without the reasoning of its turn']);
});

test('encrypted content comes only where the request includes it, a summary only where it asks', async () => {
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
