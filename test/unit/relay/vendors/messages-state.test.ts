/** Claude Code on any vendor: its thinking blocks hold the turn states, and each vendor gets back only its own. */
import { describe, expect, it } from 'vitest';
import { asRecord, recordsIn } from '../../../../shared/wire/json.ts';
import { clientNamed, Conversation } from '../../../support/loop-clients.ts';
import { vendorModels, VendorRig, type VendorCall } from '../../../support/vendor-rig.ts';

const claude = 'claude-opus-5-5';
const others = ['gpt-5.6', 'gemini-3-pro-preview', 'deepseek-v4-pro', 'kimi-k2.6'];
const rigOf = (...models: string[]): VendorRig =>
  new VendorRig(models.map((model) => vendorModels.find((one) => one.model === model)!));
const loopOf = (task: string, stream: boolean): Conversation =>
  new Conversation(clientNamed('a Messages client that thinks'), stream).ask(task);

/** The parts of an answer that only its vendor can read. */
const stateOf = ({ text }: VendorCall): string[] =>
  [...text.matchAll(/"(?:encrypted_content|thought_signature|signature)":"([^"]+)"/g)].map(
    ([, state = '']) => state,
  );
const isRefusal = ({ status }: VendorCall): boolean => status !== 200;

describe.each(others)('a tool loop that alternates between Claude and %s', (other) => {
  it.each([true, false])(
    'completes, and each vendor gets only its own state (stream: %s)',
    async (stream) => {
      const rig = rigOf(claude, other);
      const loop = loopOf('turns=5 three explain: the weather', stream);
      const turns = [claude, other, other, claude, other, claude];
      let text = '';
      for (const model of turns) {
        rig.down.clear();
        rig.down.add(model === claude ? other : claude);
        const answer = await loop.post(rig.core);
        const isMixed = answer.headers['x-relay-dropped'];
        expect([undefined, 'reasoning', 'thinking', 'reasoning, thinking']).toContain(isMixed);
        text = loop.take(answer).text;
      }
      expect(text).toContain('sunny 14');
      expect(loop.ids).toHaveLength(15);
      expect(rig.calls.filter(isRefusal)).toEqual([]);
      const ofClaude = rig.calls.filter(({ body }) => body['model'] === claude);
      const ofOther = rig.calls.filter(({ body }) => body['model'] === other);
      // Claude cannot read our seals, and other vendors cannot read its signatures.
      for (const { body } of ofClaude) expect(JSON.stringify(body)).not.toContain('relay1.');
      const claudes = ofClaude.flatMap(stateOf);
      expect(claudes.length).toBeGreaterThan(0);
      for (const { body } of ofOther)
        expect(claudes.filter((state) => JSON.stringify(body).includes(state))).toEqual([]);
      const last = JSON.stringify(ofOther.at(-1)?.body);
      for (const state of ofOther.slice(0, -1).flatMap(stateOf)) expect(last).toContain(state);
      const back = JSON.stringify(ofClaude.at(-1)?.body);
      for (const state of ofClaude.slice(0, -1).flatMap(stateOf)) expect(back).toContain(state);
    },
  );
});

describe('a seal in a signature', () => {
  it.each(others)('of %s that is damaged is rejected with 400 and its place', async (model) => {
    const rig = rigOf(model);
    const loop = loopOf('turns=2: the weather', true);
    loop.take(await loop.post(rig.core));
    const content = recordsIn(loop.items[1]?.['content']);
    const at = content.findIndex(({ type }) => type === 'thinking');
    const seal = String(content[at]?.['signature']);
    asRecord(content[at])['signature'] =
      `${seal.slice(0, -12)}${seal.at(-12) === 'A' ? 'B' : 'A'}${seal.slice(-11)}`;
    const { status, text } = await loop.post(rig.core);
    expect([status, asRecord(JSON.parse(text))['error']]).toMatchObject([
      400,
      { type: 'invalid_request_error', param: `messages[1].content[${at}].signature` },
    ]);
    expect(rig.calls).toHaveLength(1);
  });
});
