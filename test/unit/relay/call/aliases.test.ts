import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { judgeModel, parseModelName } from '../../../../shared/relay/call/access.ts';
import { createEmptySnapshot } from '../../../../shared/config/snapshot.ts';
import {
  aliasRig,
  best,
  bestIfTooLong,
  channelOf,
  hosts,
  manySmall,
  yuan,
} from '../../../support/alias-rig.ts';
import { frames, hello, keyRow, type UpstreamScript } from '../../../support/core-rig.ts';

const chat = { model: 'best', messages: [{ role: 'user', content: 'hi' }], max_tokens: 78 };
const responses = { model: 'best', input: 'hi', max_output_tokens: 78 };
const good: UpstreamScript = { steps: hello };
const down: UpstreamScript = { status: 500 };
const tooLong: UpstreamScript = {
  status: 400,
  steps: ['{"error":{"message":"too long","code":"context_length_exceeded"}}'],
};

const errorOf = ({ text }: { text: string }) => JSON.parse(text).error;

describe('a call to an alias', () => {
  it.each([
    ['chat', { body: { ...chat, stream: true }, path: '/v1/chat/completions' }],
    ['chat, not streamed', { body: chat, path: '/v1/chat/completions' }],
    ['Responses', { body: { ...responses, stream: true }, path: '/v1/responses' }],
    ['Responses, not streamed', { body: responses, path: '/v1/responses' }],
  ])(
    'falls back to the next model and uses its name in the whole answer: %s',
    async (_case, { body, path }) => {
      const rig = aliasRig()
        .upstream(down, good)
        .granted(10n * yuan);
      const answer = await rig.call(body, { path });
      expect(answer.status).toBe(200);
      expect(answer.headers).toMatchObject({ 'x-relay-model': 'large', 'x-relay-attempts': '2' });
      expect(new Set(answer.text.match(/"model":"[^"]*"/g))).toEqual(new Set(['"model":"large"']));
      expect(hosts(rig)).toEqual(['small.test', 'large.test']);
      expect(rig.logged[0]).toMatchObject({ model: 'large', alias: 'best', channel: 'large1' });
    },
  );

  it('saves the last of three attempts for a model that was not tried yet', async () => {
    const rig = aliasRig({ channels: manySmall })
      .upstream(down, down, good)
      .granted(10n * yuan);
    expect((await rig.call(chat)).headers['x-relay-model']).toBe('large');
    expect(hosts(rig)).toEqual(['small.test', 'small.test', 'large.test']);
  });

  it('skips models without a channel and unpriced models that are rejected', async () => {
    const channels = [channelOf('unpriced'), channelOf('large')];
    const aliases = best('nobodys', 'unpriced', 'large');
    const rig = aliasRig({ channels, aliases, settings: { unpricedModels: 'refuse' } });
    expect(
      (
        await rig
          .upstream(good)
          .granted(10n * yuan)
          .call(chat)
      ).headers['x-relay-model'],
    ).toBe('large');
    expect(hosts(rig)).toEqual(['large.test']);
  });

  it('accepts the prefix and the suffix of model names', async () => {
    const rig = aliasRig({ key: { official: true } }).upstream(down, good);
    const answer = await rig.call({ ...chat, model: 'web-best-official' });
    expect(answer.headers['x-relay-model']).toBe('large');
    // 7 x 0.01 + 2 x 0.02 yuan: what the model that answered would have cost.
    expect(JSON.parse(answer.text).quota).toBe(0.11);
    expect(rig.logged[0]?.search).toBe('none');
  });

  it('omits the header after an early heartbeat, and names the model in the chunks', async () => {
    const slow: UpstreamScript = { steps: [30_000, ...hello] };
    const rig = aliasRig()
      .upstream(down, slow)
      .granted(10n * yuan);
    const answer = await rig.call({ ...chat, stream: true });
    expect(answer.headers['x-relay-model']).toBeUndefined();
    expect(frames(answer.text)[0]).toMatchObject({ model: 'large' });
  });

  it('names the model being tried in events before the first content', async () => {
    const slow: UpstreamScript = { steps: [30_000], status: 200 };
    const rig = aliasRig()
      .upstream(slow, good)
      .granted(10n * yuan);
    const answer = await rig.call({ ...responses, stream: true }, { path: '/v1/responses' });
    const models = answer.text.match(/"model":"[^"]*"/g);
    expect(models?.[0]).toBe('"model":"small"');
    expect(models?.at(-1)).toBe('"model":"large"');
  });
});

describe('a prompt that is too long for the first model', () => {
  it('must wait only if a model that was not tried has a Retry-After', async () => {
    const limited: UpstreamScript = { status: 429, headers: { 'retry-after': '60' } };
    const rig = aliasRig({ aliases: bestIfTooLong('small', 'large') })
      .upstream(limited)
      .granted(10n * yuan);
    await rig.call({ ...chat, model: 'large' });
    const answer = await rig.upstream(tooLong).call(chat);
    expect([answer.status, answer.headers['retry-after']]).toEqual([429, '60']);
    const alone = aliasRig({ aliases: bestIfTooLong('small'), channels: manySmall.slice(0, 2) });
    await alone
      .upstream(limited, tooLong)
      .granted(10n * yuan)
      .call(chat);
    expect(errorOf(await alone.call(chat)).code).toBe('context_length_exceeded');
  });
});

describe('a name that is a model and an alias', () => {
  it('means the model', async () => {
    const channels = [channelOf('best'), channelOf('large')];
    const rig = aliasRig({ channels, aliases: best('large') }).upstream(good);
    const answer = await rig.call(chat);
    expect(JSON.parse(answer.text).model).toBe('best');
    expect(answer.headers['x-relay-model']).toBeUndefined();
  });
});

describe('a key’s whitelist', () => {
  it('that names the alias allows its models through the alias only', async () => {
    const rig = aliasRig({ key: { models: ['best'] } })
      .upstream(down, good)
      .granted(10n * yuan);
    expect((await rig.call(chat)).headers['x-relay-model']).toBe('large');
    expect(errorOf(await rig.call({ ...chat, model: 'large' })).code).toBe('model_not_allowed');
  });

  it('that names one model of the alias excludes the others', async () => {
    const rig = aliasRig({ key: { models: ['large'] } })
      .upstream(down, good)
      .granted(10n * yuan);
    expect((await rig.call(chat)).status).toBe(502);
    expect(hosts(rig)).toEqual(['large.test']);
  });

  it('allows a name with modifiers only with the name itself, and never an unlisted model', () => {
    const names = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const aliases = fc.uniqueArray(
      fc.record({
        name: names,
        models: fc.uniqueArray(names, { minLength: 1 }),
        onContextLength: fc.boolean(),
      }),
      { selector: ({ name }) => name },
    );
    const whitelist = fc.option(fc.uniqueArray(names), { nil: undefined });
    const modified = fc.tuple(fc.boolean(), fc.boolean());
    fc.assert(
      fc.property(aliases, whitelist, names, modified, (written, models, base, [web, official]) => {
        const snapshot = { ...createEmptySnapshot(1), models: ['a', 'b'] };
        snapshot.settings.aliases = written;
        const key = keyRow({ official: true, ...(models && { models }) });
        const admits = (name: string): boolean => {
          const model = parseModelName(name, false);
          return model !== undefined && judgeModel({ key, snapshot }, model) === undefined;
        };
        const name = `${web ? 'web-' : ''}${base}${official ? '-official' : ''}`;
        expect(admits(name)).toBe(admits(base));
        const alias = snapshot.models.includes(base) ? undefined : written.find((one) => one.name === base);
        const named = models === undefined || models.includes(base);
        expect(admits(base)).toBe(named || alias?.models.some((one) => models.includes(one)) === true);
      }),
    );
  });
});
