import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { errorStatus } from '../support/upstream-failures.ts';
import { textStream } from '../support/upstream-scripts.ts';
import { keyOf, MoneyReader, rowsOfAccount, until } from './money-reader.ts';

/** An alias of a model that is down and of one that answers, on the running stack. */
const endpoints = ['chat', 'responses'] as const;
const ways = endpoints.flatMap((endpoint) => [true, false].map((stream) => ({ endpoint, stream })));
const nameOf = ({ endpoint, stream }: (typeof ways)[number]): string => `${endpoint}-${stream}`;
const granted = 100;

let down: ScriptedUpstream;
let up: ScriptedUpstream;
let stack: WatchedStack;
let money: MoneyReader;

beforeAll(async () => {
  [down, up] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()]);
  down.script(errorStatus(503));
  up.script(textStream('Hello there.'));
  const rule = (id: number, model: string, input: number, output: number) =>
    ({ id, type: 'token-billing', models: [model], input, output }) as const;
  const channel = (id: string, { endpoint }: ScriptedUpstream) =>
    ({ id, endpoint, models: [id], state: true }) as const;
  stack = await startWatchedStack({
    environmentsMax: 2,
    rows: [
      ['channels', channel('first', down)],
      ['channels', channel('second', up)],
      ['charges', rule(901, 'first', 0.001, 0.002)],
      ['charges', rule(902, 'second', 0.1, 0.2)],
      ['settings', { name: 'aliases', value: { best: ['first', 'second'] } }],
      ...ways.flatMap((way) => rowsOfAccount(nameOf(way), granted, { models: ['best'] })),
    ],
  });
  money = new MoneyReader(stack);
  await until(async () => (await money.accounts()).size === ways.length + 1);
});
afterAll(async () => {
  await stack?.stop();
  await Promise.all([down, up].map((upstream) => upstream?.close()));
});

describe('a call to an alias whose first model is down', () => {
  it.each(ways)(
    'has the name, the price and the row of the second: $endpoint, stream $stream',
    async (way) => {
      const { endpoint, stream } = way;
      const asked = endpoint === 'chat' ? { messages: [{ role: 'user', content: 'hi' }] } : { input: 'hi' };
      const response = await fetch(
        `${stack.origin}/v1/${endpoint === 'chat' ? 'chat/completions' : 'responses'}`,
        {
          method: 'POST',
          headers: { authorization: `Bearer ${keyOf(nameOf(way))}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'best', stream, ...asked }),
        },
      );
      const text = await response.text();
      expect(response.status).toBe(200);
      expect(response.headers.get('x-relay-model')).toBe('second');
      expect(new Set(text.match(/"model":"[^"]*"/g))).toEqual(new Set(['"model":"second"']));
      // 11 tokens in, 7 out: 11 x 0.1 / 1,000 + 7 x 0.2 / 1,000 yuan.
      expect(await money.settled(nameOf(way))).toMatchObject({ spent: 2_500_000, available: 99_997_500_000 });
      expect(await money.ledger(nameOf(way), 1)).toMatchObject([
        { model: 'second', alias: 'best', charge: 0.0025, price: '902:tokens:0.1:0.2', channel: 'second' },
      ]);
    },
  );
});

it('the alias is listed, and found by its name', async () => {
  const list = (await (await fetch(`${stack.origin}/v1/models`)).json()) as { data: { id: string }[] };
  expect(list.data.map(({ id }) => id)).toContain('best');
  expect((await fetch(`${stack.origin}/v1/models/best`)).status).toBe(200);
});
