/** Requests that continue stored responses, through the core. */
import { describe, expect, it } from 'vitest';
import { asRecord } from '../../../../shared/wire/json.ts';
import {
  CoreRig,
  data,
  delta,
  done,
  finish,
  hello,
  keyRow,
  usage,
  type Answer,
  type RigOptions,
  type Step,
} from '../../../support/core-rig.ts';

type Json = Record<string, unknown>;

const store = { allKeys: true, days: 30, eventMinutes: 10 };
const storing: RigOptions = { settings: { store } };
const tools = [{ type: 'function', name: 'look', parameters: { type: 'object' } }];
const idOf = (call: number): string => `01call${String(call).padStart(20, '0')}`;
const suffix = idOf(1);

/** Posts with an id for each call. */
class Chain {
  readonly rig: CoreRig;
  #calls: number;

  /** @param calls how many ids others have taken */
  constructor(options: RigOptions = storing, calls = 0) {
    this.#calls = calls;
    this.rig = new CoreRig(options).upstream({ steps: hello });
    this.rig.quotas.grant('acme', 1_000_000_000_000n);
  }

  post(body: Json, headers?: Record<string, string>): Promise<Answer> {
    const more = { path: '/v1/responses', id: idOf((this.#calls += 1)), ...(headers && { headers }) };
    return this.rig.post({ model: 'm', ...body }, more);
  }

  async answered(body: Json): Promise<Json> {
    const { status, text } = await this.post(body);
    if (status !== 200) throw new Error(`${status} ${text}`);
    return JSON.parse(text);
  }

  get sentMessages(): unknown {
    return this.rig.sent.at(-1)?.json['messages'];
  }

  async body(id: unknown): Promise<Json> {
    const found = await this.rig.stored.responses.read('acme', [String(id)]);
    return asRecord(found.get(String(id))?.body);
  }
}

const errorOf = ({ status, text }: Answer): Json => ({
  status,
  ...asRecord(asRecord(JSON.parse(text))['error']),
});

const calling = (args: string, reason: string): Step[] => [
  data({
    choices: [
      {
        index: 0,
        delta: {
          tool_calls: [
            { index: 0, id: 'call_of_the_vendor_0001', function: { name: 'look', arguments: args } },
          ],
        },
      },
    ],
  }),
  finish(reason),
  usage(7, 2),
  done,
];

describe('a key without the right to store', () => {
  it.each<[string, Json, string]>([
    ['previous_response_id', { previous_response_id: `resp-${suffix}` }, 'previous_response_id'],
    ['background', { background: true }, 'background'],
    ['conversation', { conversation: 'conv_1' }, 'conversation'],
    ['item_reference', { input: [{ type: 'item_reference', id: `msg_${suffix}_0` }] }, 'input[0].type'],
    ['a reference without a type', { input: [{ id: `msg_${suffix}_0` }] }, 'input[0].type'],
  ])('is rejected for %s, by name', async (_case, body, param) => {
    for (const options of [{}, { ...storing, keys: { 'sk-test': { row: keyRow({ store: false }) } } }]) {
      const { rig, post } = bound(new Chain(options));
      expect(errorOf(await post({ input: 'x', ...body }))).toMatchObject({ status: 400, param });
      expect(rig.sent).toEqual([]);
    }
  });
  const bound = (chain: Chain) => ({ rig: chain.rig, post: (body: Json) => chain.post(body) });

  it.each([true, false, undefined, null, 'yes'])('gets the answer unstored with store: %s', async (asked) => {
    const chain = new Chain({});
    const { id, store: isStored } = await chain.answered({ input: 'x', store: asked });
    expect(isStored).toBe(false);
    expect(await chain.body(id)).toEqual({});
  });
});

describe('a key with the right to store', () => {
  it('continues from the last turn without its instructions, in another environment', async () => {
    const chain = new Chain();
    const first = await chain.answered({ input: 'What?', instructions: 'Be brief.' });
    expect(first).toMatchObject({ store: true, previous_response_id: null });
    const fresh = new Chain({ ...storing, beside: chain.rig }, 1);
    const second = await fresh.answered({ input: 'And?', previous_response_id: first['id'] });
    expect(second).toMatchObject({ store: true, previous_response_id: first['id'], instructions: null });
    expect(fresh.sentMessages).toEqual([
      { role: 'user', content: 'What?' },
      { role: 'assistant', content: 'Hello' },
      { role: 'user', content: 'And?' },
    ]);
  });

  it.each<[string, (id: unknown) => Json]>([
    ['a previous response', (id) => ({ input: 'b', previous_response_id: id })],
    ['an item', () => ({ input: [{ type: 'item_reference', id: `msg_${suffix}_0` }] })],
  ])('continues from %s in an environment with an outdated key', async (_case, body) => {
    const keys = { 'sk-test': { row: keyRow({ store: true }) } };
    const chain = new Chain({ keys });
    const { id } = await chain.answered({ input: 'a' });
    let isOld = true;
    const other = {
      get 'sk-test'() {
        const row = isOld ? keyRow() : keys['sk-test'].row;
        isOld = false;
        return { row };
      },
    };
    const fresh = new Chain({ keys: other, beside: chain.rig }, 1);
    expect(await fresh.answered(body(id))).toMatchObject({ store: true });
  });

  it('stays on one upstream during a conversation, even if the instructions change', async () => {
    const channels = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ({ id, endpoint: `https://${id}.test/v1` }));
    const hosts = new Set<string>();
    for (let conversation = 0; conversation < 8; conversation += 1) {
      const chain = new Chain({ ...storing, channels });
      let previous: unknown;
      for (const word of ['Be brief.', 'Be long.', '', 'Be kind.']) {
        const input = previous === undefined ? `question ${conversation}` : 'more';
        const body = { input, instructions: word, previous_response_id: previous };
        previous = (await chain.answered(body))['id'];
      }
      const used = new Set(chain.rig.sent.map(({ url }) => new URL(url).host));
      expect(used.size).toBe(1);
      for (const host of used) hosts.add(host);
    }
    expect(hosts.size).toBeGreaterThan(2);
  });
});

describe('the stored input of a request', () => {
  it('has ids, types and parts in the order of the request', async () => {
    const chain = new Chain();
    const { id: first } = await chain.answered({ input: 'hi' });
    expect((await chain.body(first))['input']).toEqual([
      {
        id: `msg_${suffix}_in0`,
        type: 'message',
        role: 'user',
        status: 'completed',
        content: [{ type: 'input_text', text: 'hi' }],
      },
    ]);
    const reference = { type: 'item_reference', id: `msg_${suffix}_0` };
    const { id } = await chain.answered({
      input: [
        { role: 'developer', content: 'Rules.' },
        { id: `msg_${suffix}_0` },
        reference,
        { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}', id: 'own' },
        { type: 'function_call_output', call_id: 'c', output: 'seen', id: 'own' },
        { role: 'user', content: 'x', id: 'not usable: blanks' },
      ],
    });
    const own = idOf(2);
    expect((await chain.body(id))['input']).toMatchObject([
      { id: `msg_${own}_in0`, type: 'message', role: 'developer', content: [{ text: 'Rules.' }] },
      reference,
      reference,
      { id: 'own', type: 'function_call' },
      { id: `fco_${own}_in4`, type: 'function_call_output' },
      { id: `msg_${own}_in5`, type: 'message' },
    ]);
    expect(chain.sentMessages).toMatchObject([
      { role: 'system', content: 'Rules.' },
      { role: 'assistant', tool_calls: [{ id: 'c' }] },
      { role: 'tool', tool_call_id: 'c' },
      { role: 'user' },
    ]);
  });
});

describe('a stored turn', () => {
  it('accepts the results of its calls from the next request, and only once', async () => {
    const chain = new Chain();
    chain.rig.upstream({ steps: calling('{}', 'tool_calls') }, { steps: hello });
    const { id, output } = await chain.answered({ input: 'a', tools });
    const callId = (output as Json[])[0]?.['call_id'];
    const result = { type: 'function_call_output', call_id: callId, output: 'seen' };
    const second = await chain.answered({ input: [result], previous_response_id: id, tools });
    expect(chain.sentMessages).toMatchObject([
      { role: 'user', content: 'a' },
      { role: 'assistant', tool_calls: [{ id: callId }] },
      { role: 'tool', tool_call_id: callId, content: 'seen' },
    ]);
    const again = await chain.post({ input: [result], previous_response_id: second['id'], tools });
    expect(errorOf(again)).toMatchObject({ status: 400, param: 'input[0].call_id' });
  });

  it('drops a truncated call, because its client cannot remove it', async () => {
    const chain = new Chain();
    chain.rig.upstream({ steps: [delta('Let me'), ...calling('{"ci', 'length')] }, { steps: hello });
    const { id, status } = await chain.answered({ input: 'a', tools });
    expect(status).toBe('incomplete');
    await chain.answered({ input: 'go on', previous_response_id: id });
    expect(chain.sentMessages).toEqual([
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'Let me' },
      { role: 'user', content: 'go on' },
    ]);
  });

  it.each<[string, (seal: string) => string]>([
    ['was damaged', (seal) => `${seal.slice(0, -12)}${seal.at(-12) === 'A' ? 'B' : 'A'}${seal.slice(-11)}`],
    ['belongs to a removed key', (seal) => seal.replace('relay1.1.', 'relay1.7.')],
    ['is cut', (seal) => seal.slice(0, 30)],
  ])('whose seal %s is sent without its state, and the answer names it', async (_case, broken) => {
    const chain = new Chain({ ...storing, channels: [{ type: 'openai', mapper: { m: 'deepseek-v4-pro' } }] });
    const thinking = data({ choices: [{ index: 0, delta: { reasoning_content: 'Hm.' } }] });
    chain.rig.upstream({ steps: [thinking, ...calling('{}', 'tool_calls')] }, { steps: hello });
    const { id, output } = await chain.answered({ input: 'a', tools });
    const call_id = (output as Json[]).at(-1)?.['call_id'];
    const request = {
      input: [{ type: 'function_call_output', call_id, output: 'seen' }],
      previous_response_id: id,
      tools,
    };
    const whole = await chain.post(request);
    expect(whole.headers['x-relay-dropped']).toBeUndefined();
    const found = (await chain.rig.stored.responses.read('acme', [String(id)])).get(String(id));
    if (!found?.body.seal) throw new Error('nothing was sealed');
    chain.rig.stored.set({
      ...found,
      body: { ...found.body, seal: broken(found.body.seal) },
    });
    const answer = await chain.post(request);
    expect(answer).toMatchObject({ status: 200, headers: { 'x-relay-dropped': 'reasoning' } });
  });
});
