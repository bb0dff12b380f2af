/** Limits of stored responses: each error in OpenAI's form and with the contract's status, over HTTP on the running stack. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { BatchWriteCommand, DynamoDBDocumentClient, GetCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { errorBody } from '../support/wire-schemas.ts';
import { textStream } from '../support/upstream-scripts.ts';
import { models, clientStack, storingKeys } from './client-stack.ts';

let stack: Awaited<ReturnType<typeof clientStack>>;
let documents: DynamoDBDocumentClient;
/** By what a case calls it. */
const ids: Record<string, string> = {
  unknown: `resp-${'0'.repeat(26)}`,
  short: 'resp-01',
  'of capitals': `resp-${'A'.repeat(26)}`,
  'in unicode': 'resp-漢字',
  'of 8,000 characters': 'x'.repeat(8_000),
  empty: ' ',
};

const model = models.scripted;
const { own, second, other } = storingKeys;

const ask = (method: string, path: string, { key = own, body }: { key?: string; body?: object } = {}) =>
  fetch(`${stack.baseUrl}/responses${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify({ model, input: 'x', ...body }) }),
  });
async function created(body: object = {}): Promise<string> {
  const answer = await ask('POST', '', { body });
  const text = await answer.text();
  expect({ status: answer.status, text }).toMatchObject({ status: 200 });
  return /"id":"(resp-\w+)"/.exec(text)?.[1] ?? '';
}
async function refusal(answer: Response): Promise<object> {
  const { error } = errorBody.parse(await answer.json());
  return { status: answer.status, code: error.code, param: error.param };
}
const notFound = (param: string) => ({ status: 404, code: 'response_not_found', param });
const previousNotFound = {
  status: 400,
  code: 'previous_response_not_found',
  param: 'previous_response_id',
};
const invalid = (param: string) => ({ status: 400, code: 'invalid_value', param });

beforeAll(async () => {
  stack = await clientStack();
  documents = DynamoDBDocumentClient.from(
    new DynamoDBClient({
      endpoint: stack.dynamodbEndpoint,
      region: 'local',
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    }),
  );
  stack.upstream.script(textStream('It is sunny.'));
  ids['plain'] = await created();
  ids['streamed'] = await created({ background: true, stream: true });
  ids['deleted'] = await created();
  ids['not stored'] = await created({ store: false });
  await ask('DELETE', `/${ids['deleted']}`);
});
afterAll(async () => {
  documents?.destroy();
});
beforeEach(() => stack.upstream.forget());

const routes = [
  ['GET', ''],
  ['GET', '?stream=true'],
  ['GET', '/input_items'],
  ['POST', '/cancel'],
  ['DELETE', ''],
] as const;
const withoutStore = 'a key that may not store';
/** The requested id, and the requesting key. */
const unreadable: [id: string, by: string][] = [
  ...[...Object.keys(ids), 'deleted', 'not stored'].map((id): [string, string] => [id, 'its own key']),
  ['streamed', 'another account'],
  ['streamed', withoutStore],
];
const keyOf = (by: string): string =>
  by === 'another account' ? other : by === withoutStore ? stack.key : own;

describe.each(unreadable)('an id that is %s, with %s', (id, by) => {
  test.each(routes)('is not found by %s %s', async (method, below) => {
    const answer = await ask(method, `/${encodeURIComponent(ids[id] ?? '')}${below}`, { key: keyOf(by) });
    expect(await refusal(answer)).toEqual(notFound('id'));
  });

  test('cannot be continued, and its items cannot be referenced', async () => {
    const key = keyOf(by);
    const isStoring = by !== withoutStore;
    const previous = await ask('POST', '', { key, body: { previous_response_id: ids[id] } });
    const field = 'previous_response_id';
    expect(await refusal(previous)).toMatchObject(
      isStoring ? previousNotFound : { status: 400, param: field },
    );
    const item = `msg_${ids[id]?.replace('resp-', '')}_0`;
    const referring = await ask('POST', '', { key, body: { input: [{ type: 'item_reference', id: item }] } });
    expect(await refusal(referring)).toMatchObject(
      isStoring ? notFound('input[0].id') : { status: 400, param: 'input[0].type' },
    );
    expect(stack.upstream.requests).toEqual([]);
  });
});

test.each<[id: string, path: string, expected: object]>([
  ...['10000', '-1', 'x', '1.5', ''].map((after): [string, string, object] => [
    'streamed',
    `?stream=true&starting_after=${after}`,
    invalid('starting_after'),
  ]),
  ['plain', '?stream=true', invalid('stream')],
  ...['0', '101', 'x', '-1'].map((limit): [string, string, object] => [
    'plain',
    `/input_items?limit=${limit}`,
    invalid('limit'),
  ]),
  ['plain', '/input_items?order=newest', invalid('order')],
  ['plain', `/input_items?after=msg_${'0'.repeat(26)}_0`, invalid('after')],
])('%s %s is rejected by name', async (id, path, expected) => {
  expect(await refusal(await ask('GET', `/${ids[id]}${path}`))).toEqual(expected);
});

test.each<[body: object, expected: object]>([
  [{ previous_response_id: 7 }, { status: 400, param: 'previous_response_id' }],
  [{ previous_response_id: '' }, previousNotFound],
  [{ input: [{ type: 'item_reference', id: 7 }] }, { status: 400, param: 'input[0].id' }],
  [{ store: 'yes' }, { status: 400, param: 'store' }],
  [{ background: true, store: false }, invalid('background')],
  [{ conversation: 'conv_1' }, { status: 400, param: 'conversation' }],
])('%j is rejected by name', async (body, expected) => {
  expect(await refusal(await ask('POST', '', { body }))).toMatchObject(expected);
});

test('a response without background cannot be cancelled, and a finished one does not change', async () => {
  expect(await refusal(await ask('POST', `/${ids['plain']}/cancel`))).toEqual(invalid('response_id'));
  const whole = await (await ask('GET', `/${ids['streamed']}`)).json();
  for (const key of [own, second])
    expect(await (await ask('POST', `/${ids['streamed']}/cancel`, { key })).json()).toEqual(whole);
});

test('thousands of values in include have no effect', async () => {
  const include = Array.from({ length: 5_000 }, () => 'reasoning.encrypted_content');
  const plain = await created({ include });
  const query = include.slice(0, 200).join(',');
  expect((await ask('GET', `/${plain}?include=${query}`)).status).toBe(200);
});

describe('a conversation', () => {
  test('is rejected at the turn with more than 10 MB of history, before the upstream is called', async () => {
    let previous_response_id: string | undefined;
    for (let turn = 0; turn < 2; turn += 1)
      previous_response_id = await created({ previous_response_id, input: 'word '.repeat(1_100_000) });
    stack.upstream.forget();
    const answer = await ask('POST', '', { body: { previous_response_id } });
    expect(await refusal(answer)).toEqual({
      status: 400,
      code: 'conversation_too_long',
      param: 'previous_response_id',
    });
    expect(stack.upstream.requests).toEqual([]);
    expect((await ask('GET', `/${previous_response_id}`)).status).toBe(200);
  }, 60_000);

  test('has at most 1,000 turns, all of which are sent to the upstream', async () => {
    const Key = { account: 'test', id: await created({ input: 'And?' }) };
    const { Item: turn } = await documents.send(new GetCommand({ TableName: 'relay-responses', Key }));
    const idOf = (number: number): string => `resp-${String(number).padStart(26, '0')}`;
    // The newest 99 of 999, because writing all takes two CPU seconds: the unit test of conversations has them.
    const copies = Array.from({ length: 99 }, (_, i) => ({
      ...turn,
      id: idOf(901 + i),
      turn: 901 + i,
      ancestors: Array.from({ length: Math.min(i, 32) }, (_none, back) => idOf(900 + i - back)),
    }));
    for (let at = 0; at < copies.length; at += 25) {
      const puts = copies.slice(at, at + 25).map((Item) => ({ PutRequest: { Item } }));
      await documents.send(new BatchWriteCommand({ RequestItems: { 'relay-responses': puts } }));
    }
    const last = await created({ previous_response_id: idOf(999) });
    expect(stack.sentMessages().at(-1)).toHaveLength(2 * 99 + 1);
    const answer = await ask('POST', '', { body: { previous_response_id: last } });
    expect(await refusal(answer)).toMatchObject({ status: 400, code: 'conversation_too_long' });
    const list = await ask('GET', `/${last}/input_items?limit=1&order=asc`);
    expect(await list.json()).toMatchObject({ has_more: true });
  }, 60_000);

  test('cannot be continued once a turn in its middle has expired, and lists show the remaining items', async () => {
    const turns: string[] = [];
    for (const input of ['one', 'two', 'three'])
      turns.push(await created({ input, previous_response_id: turns.at(-1) }));
    await documents.send(
      new UpdateCommand({
        TableName: 'relay-responses',
        Key: { account: 'test', id: turns[1] },
        UpdateExpression: 'SET expires = :now',
        ExpressionAttributeValues: { ':now': Math.floor(Date.now() / 1000) },
      }),
    );
    const answer = await ask('POST', '', { body: { previous_response_id: turns[2] } });
    expect(await refusal(answer)).toEqual(previousNotFound);
    expect(await refusal(await ask('GET', `/${turns[1]}`))).toEqual(notFound('id'));
    expect((await ask('GET', `/${turns[2]}`)).status).toBe(200);
    const list = await ask('GET', `/${turns[2]}/input_items`);
    expect(await list.json()).toMatchObject({ data: [{ content: [{ text: 'three' }] }], has_more: false });
  });
});
