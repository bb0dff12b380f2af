/** State that is lost, late, foreign or damaged, against the doubles that want it back. */
import { describe, expect, it } from 'vitest';
import { asRecord } from '../../../../shared/wire/json-record.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/stores/store-errors.ts';
import { keyRow, type RigOptions } from '../../../support/core-rig.ts';
import { clientNamed, Conversation } from '../../../support/loop-clients.ts';
import { vendorModels, VendorRig } from '../../../support/vendor-rig.ts';

/** Models that want something back with their turns. */
const models = vendorModels.map(({ model }) => model).filter((model) => !/^(gpt-4|picky)/.test(model));
const storing = ['a chat client that sends back standard fields', 'a Responses client without include'];
const sealing = 'a Responses client that keeps encrypted reasoning';
const day = 86_400_000;

function begin(model: string, kind: string, options: RigOptions = {}) {
  const rig = new VendorRig(
    vendorModels.filter((one) => one.model === model),
    options,
  );
  return { rig, loop: new Conversation(clientNamed(kind), true).ask('turns=4 three: the weather') };
}

const refusals = (rig: VendorRig): object[] => rig.calls.filter(({ status }) => status !== 200);
const lostWhys = (rig: VendorRig): unknown[] =>
  rig.core.events.filter(({ name }) => name === 'turn_state_lost').map(({ fields }) => fields['why']);

describe.each(models)('in a tool loop of %s', (model) => {
  it.each(storing)('%s goes on when the kept state has expired', async (kind) => {
    const { rig, loop } = begin(model, kind);
    loop.take(await loop.post(rig.core));
    loop.take(await loop.post(rig.core));
    await rig.core.clock.run(rig.core.clock.sleep(31 * day));
    rig.renew();
    const { text } = await loop.run(rig.core);
    expect(text).toContain('sunny');
    expect(refusals(rig)).toEqual([]);
  });

  it.each(storing)(
    '%s gets a whole answer when its state cannot be written, and the log says so',
    async (kind) => {
      const { rig, loop } = begin(model, kind);
      rig.core.turnStates.before = () => Promise.reject(new StoreUnavailable());
      const { text } = await loop.run(rig.core);
      expect(text).toContain('sunny');
      expect(refusals(rig)).toEqual([]);
      expect(new Set(lostWhys(rig))).toEqual(new Set(['write_failed', 'read_failed']));
    },
  );

  it.each(storing)('%s gets a whole answer from a store that is slow', async (kind) => {
    const { rig, loop } = begin(model, kind);
    rig.core.turnStates.before = () => rig.core.clock.sleep(4_000);
    const { text } = await loop.run(rig.core);
    expect(text).toContain('sunny');
    expect(refusals(rig)).toEqual([]);
    expect(lostWhys(rig)).toContain('read_late');
  });

  const keys = ['first', 'second', 'third'].map((secret, index) => ({ number: index + 1, secret }));

  it.each([sealing, ...storing])('%s loses nothing by two rotations of the seal key', async (kind) => {
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
    ['of a key that is gone', { sealKeys: [{ number: 2, secret: 'second' }] }],
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

  it('a seal under the id of another item is left out and named', async () => {
    const { rig, loop } = begin(model, sealing);
    loop.take(await loop.post(rig.core));
    asRecord(loop.items[reasoningAt(loop)])['id'] = 'rs_of_another';
    const answer = await loop.post(rig.core);
    loop.take(answer);
    expect(answer.headers['x-relay-dropped']).toBe('reasoning');
    expect(refusals(rig)).toEqual([]);
  });

  it('a damaged seal is a 400 that names its place, before any upstream is asked', async () => {
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

describe('a strict server', () => {
  it("is asked again without another vendor's reasoning that a client sends back", async () => {
    const { rig, loop } = begin('picky', 'a chat client that sends back whole messages');
    loop.take(await loop.post(rig.core));
    const turn = loop.items.find(({ role }) => role === 'assistant');
    asRecord(turn)['reasoning_content'] = 'Of another vendor.';
    const answer = await loop.post(rig.core);
    loop.take(answer);
    expect(rig.calls.map(({ status }) => status)).toEqual([200, 422, 200]);
  });
});
