/** Lost, late, foreign or damaged state, at the doubles that want it back. */
import { describe, expect, it } from 'vitest';
import { asRecord } from '../../../../shared/wire/json.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { keyRow, type RigOptions } from '../../../support/core-rig.ts';
import { clientNamed, Conversation } from '../../../support/loop-clients.ts';
import { vendorModels, VendorRig } from '../../../support/vendor-rig.ts';

/** Models that want state back with their turns. */
const models = vendorModels.map(({ model }) => model).filter((model) => !/^(gpt-4|picky)/.test(model));
const storing = ['a chat client that sends back standard fields', 'a Responses client without include'];
const sealing = 'a Responses client that keeps encrypted reasoning';

function begin(model: string, kind: string, options: RigOptions = {}) {
  const rig = new VendorRig(
    vendorModels.filter((one) => one.model === model),
    options,
  );
  return { rig, loop: new Conversation(clientNamed(kind), true).ask('turns=4 three: the weather') };
}

const refusals = (rig: VendorRig): object[] => rig.calls.filter(({ status }) => status !== 200);
const taught = (rig: VendorRig): string[] =>
  rig.core.learned.written.map(({ fact }) => fact).filter((fact) => fact !== 'keeps_state');
const lostWhys = (rig: VendorRig): unknown[] =>
  rig.core.events.filter(({ name }) => name === 'turn_state_lost').map(({ fields }) => fields['why']);

describe.each(models)('in a tool loop of %s', (model) => {
  it.each(storing)(
    '%s gets a complete answer and a log entry if its state cannot be written',
    async (kind) => {
      const { rig, loop } = begin(model, kind);
      rig.core.turnStates.before = () => Promise.reject(new StoreUnavailable());
      const { text } = await loop.run(rig.core);
      expect(text).toContain('sunny');
      expect(refusals(rig)).toEqual([]);
      expect(new Set(lostWhys(rig))).toEqual(new Set(['write_failed', 'read_failed']));
    },
  );

  const keys = ['first', 'second', 'third'].map((secret, index) => ({ number: index + 1, secret }));

  it.each([sealing, ...storing])('%s loses no state in two rotations of the seal key', async (kind) => {
    const { rig, loop } = begin(model, kind, { sealKeys: keys.slice(0, 1) });
    loop.take(await loop.post(rig.core));
    rig.renew({ sealKeys: keys.slice(0, 2) });
    loop.take(await loop.post(rig.core));
    rig.renew({ sealKeys: keys });
    const { answers } = await loop.run(rig.core);
    expect(answers.map(({ headers }) => headers['x-relay-dropped'])).toEqual(answers.map(() => undefined));
    expect(rig.objections).toEqual([]);
  });

  const foreign: [string, RigOptions, Record<string, unknown>?][] = [
    ['of a removed key', { sealKeys: [{ number: 2, secret: 'second' }] }],
    ['of another account', { keys: { 'sk-test': { row: keyRow({ account: 'other' }) } } }],
    ['of another model', {}, { model: 'n' }],
  ];

  it.each(foreign)('a seal %s is left out and named', async (_case, options, more = {}) => {
    const { rig, loop } = begin(model, sealing, { sealKeys: keys.slice(0, 1) });
    loop.take(await loop.post(rig.core));
    rig.renew(options);
    const answer = await loop.post(rig.core, more);
    loop.take(answer);
    expect(answer.headers['x-relay-dropped']).toBe('reasoning');
    expect(refusals(rig)).toEqual([]);
  });

  const reasoningAt = (loop: Conversation): number =>
    loop.items.findIndex(({ type }) => type === 'reasoning');

  it('the relay rejects a damaged seal with 400 and its place before it calls an upstream', async () => {
    const { rig, loop } = begin(model, sealing);
    loop.take(await loop.post(rig.core));
    const at = reasoningAt(loop);
    const item = asRecord(loop.items[at]);
    const seal = String(item['encrypted_content']);
    item['encrypted_content'] = `${seal.slice(0, -12)}${seal.at(-12) === 'A' ? 'B' : 'A'}${seal.slice(-11)}`;
    const { status, text } = await loop.post(rig.core);
    expect(status).toBe(400);
    expect(asRecord(asRecord(JSON.parse(text))['error'])).toMatchObject({
      param: `input[${at}].encrypted_content`,
      code: 'invalid_encrypted_content',
    });
    expect(rig.calls).toHaveLength(1);
  });
});

/** Rows with model names that the relay does not know. */
const nameless: [string, string, string, string, Record<string, unknown>][] = [
  ['a missing signature', 'gemini', 'gemini-3-pro-preview', 'thought_signature', { type: 'openai' }],
  ['missing reasoning', 'deepseek', 'house-model', 'reasoning_content', { type: 'openai' }],
  [
    'missing thinking',
    'anthropic',
    'claude-sonnet-4-6',
    'thinking',
    { type: 'anthropic', params: { set: { thinking: { type: 'enabled', budget_tokens: 1024 } } } },
  ],
];

describe('a vendor that rejects a request with lost state', () => {
  /** A tool loop that another vendor began, in standard fields, so its state is lost. */
  const question = { role: 'user', content: 'turns=4 three: the weather' };
  const call = {
    id: 'call_1',
    type: 'function',
    function: { name: 'weather', arguments: '{"city":"Paris"}' },
  };
  const messages = [
    question,
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
  ];
  const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }];
  const loop = { model: 'm', tools, messages };

  it.each(nameless)(
    'for %s is retried with a replacement, which the next call sends at once (%s, %s)',
    async (_case, vendor, model, field, row) => {
      const rig = new VendorRig([{ vendor, model, row }]);
      const first = await rig.core.post(loop);
      expect([first.status, rig.calls.map(({ status }) => status)]).toEqual([200, [400, 200]]);
      expect(taught(rig)).toEqual([`wants_back:${field}`]);
      await rig.core.post(loop);
      expect(rig.calls.map(({ status }) => status)).toEqual([400, 200, 200]);
      expect(rig.core.logged.map(({ attempts }) => attempts?.length)).toEqual([1, 1]);
    },
  );

  it.each(nameless)('for %s is not retried if its error quotes the request (%s)', async (...one) => {
    const [, vendor, model, , row] = one;
    const rig = new VendorRig([{ vendor, model, row }]);
    await rig.core.post(loop);
    const said = String(JSON.parse(rig.calls[0]?.text ?? '').error?.message ?? rig.calls[0]?.text);
    const again = new VendorRig([{ vendor, model, row }]);
    const quoting = { ...loop, messages: [{ role: 'user', content: said }, ...messages.slice(1)] };
    expect((await again.core.post(quoting)).status).toBe(400);
    expect(again.calls).toHaveLength(1);
    expect(taught(again)).toEqual([]);
  });
});

describe('a vendor that rejects a reasoning effort', () => {
  it('is retried with the nearest effort in its error, which the next call sends at once', async () => {
    const rig = new VendorRig([{ vendor: 'openai', model: 'gpt-6-astra', row: { type: 'openai' } }]);
    const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }], reasoning_effort: 'max' };
    const first = await rig.core.post(ask);
    expect([first.status, first.headers['x-relay-effort']]).toEqual([200, 'xhigh']);
    expect(taught(rig)).toEqual(['efforts:low+medium+high+xhigh']);
    await rig.core.post(ask);
    expect(rig.calls.map(({ status }) => status)).toEqual([400, 200, 200]);
  });
});

describe('a vendor that does not accept an answer as the last turn', () => {
  it.each(['gemini-3.8-flash', 'gemini-3-pro-preview'])('gets one more turn: %s', async (model) => {
    const rig = new VendorRig([{ vendor: 'gemini', model, row: { type: 'gemini' } }]);
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'Well' },
    ];
    const answer = await rig.core.post({ model: 'm', messages });
    expect([answer.status, rig.objections]).toEqual([200, []]);
    expect(rig.calls[0]?.body['messages']).toHaveLength(model === 'gemini-3.8-flash' ? 3 : 2);
  });
});

describe('a strict server', () => {
  it("is retried without another vendor's reasoning that a client sends back", async () => {
    const { rig, loop } = begin('picky', 'a chat client that sends back whole messages');
    loop.take(await loop.post(rig.core));
    const turn = loop.items.find(({ role }) => role === 'assistant');
    asRecord(turn)['reasoning_content'] = 'Of another vendor.';
    const answer = await loop.post(rig.core);
    loop.take(answer);
    expect(rig.calls.map(({ status }) => status)).toEqual([200, 422, 200]);
  });
});
