import { describe, expect, it } from 'vitest';
import { AccountRow } from '../../../../shared/config/rows/account-row.ts';
import { defaultSettings, type Settings } from '../../../../shared/config/settings.ts';
import { byCall, byTokens, free, yuan } from '../../../support/billing-rig.ts';
import { best, channelOf, charges as ofAlias } from '../../../support/alias-rig.ts';
import {
  CoreRig,
  delta,
  demoKey,
  done,
  finish,
  keyRow,
  usage,
  type RigOptions,
} from '../../../support/core-rig.ts';

const path = '/v1/responses';
const requestId = '01call00000000000000000001';
const id = `resp-${requestId}`;
/** 22 tokens of input and 78 of output, by `byTokens`. */
const held = 178_000_000n;
/** 5 tokens of input and 3 of output, by `byTokens`. */
const agreed = 11_000_000n;

type Edit = (options: RigOptions) => void;

interface Scene extends RigOptions {
  body?: object;
  /** From the acceptance to the run. */
  waitMs?: number;
}

/** A background response whose configuration is edited between its acceptance and its run. */
async function endOf(edit: Edit, { body = {}, waitMs = 0, ...given }: Scene = {}) {
  const keys = { [demoKey]: { row: keyRow({ store: true }) } };
  const options: RigOptions = { charges: [byTokens], keys, ...given };
  const rig = new CoreRig(options);
  rig.quotas.grant('acme', yuan);
  rig.upstream({ steps: [delta('Hello'), finish(), usage(5, 3), done] });
  const asked = { model: 'm', input: 'hi', max_output_tokens: 78, background: true, ...body };
  expect((await rig.post(asked, { path, id: requestId })).status).toBe(200);
  const account = () => rig.quotas.items.get('acme');
  let amount: bigint | undefined;
  const reserve = rig.quotas.reserve.bind(rig.quotas);
  rig.quotas.reserve = (write) => {
    amount = write.entry.amount;
    return reserve(write);
  };
  edit(options);
  await rig.clock.run(rig.clock.sleep(waitMs));
  await rig.clock.run(rig.runs());
  const { open, available = 0n, spent = 0n } = account() ?? {};
  expect({ open: open?.size, sum: available + spent }).toEqual({ open: 0, sum: yuan });
  const ended = (await rig.stored.responses.read('acme', [id])).get(id);
  return {
    held: amount,
    charged: spent,
    status: ended?.head.status,
    error: ended?.body.response['error'],
    limit: rig.sent[0]?.json['max_completion_tokens'] ?? rig.sent[0]?.json['max_tokens'],
    reason: rig.logged.at(-1)?.reason,
    faults: rig.faults,
  };
}

const charging =
  (...rules: Record<string, unknown>[]): Edit =>
  (options) =>
    void (options.charges = rules);

/** The customer's price rises 7 seconds after the start of the virtual clock. */
const keysOfCustomer = {
  [demoKey]: {
    row: keyRow({ store: true }),
    account: AccountRow.parse({
      account: 'acme',
      prices: [{ models: ['m'], factor: 9, from: '2026-11-21T00:00:07Z' }],
    }),
  },
};

const dearer = { ...byTokens, input: 100, output: 200 };
const refusing: Partial<Settings> = { unpricedModels: 'refuse' };

describe('a background response whose price is edited before it runs', () => {
  it.each<[string, Edit, Scene?]>([
    ['nothing is edited', () => {}],
    ['its rule becomes dearer', charging(dearer)],
    ['its rule becomes dearer, and it runs late', charging(dearer), { waitMs: 14_000 }],
    ['a dated price of its customer begins', () => {}, { waitMs: 14_000, keys: keysOfCustomer }],
    ['its rule becomes cheaper', charging({ ...byTokens, input: 0.001, output: 0.001 })],
    ['its rule is deleted', charging()],
    ['its rule is deleted and unpriced models are refused', charging(), { settings: refusing }],
    ['its rule becomes free', charging({ ...free, id: 1 })],
    ['its rule becomes a price per call', charging({ ...byCall, id: 1 })],
    [
      'a rule is added with a date before it',
      charging(byTokens, { ...dearer, id: 2, from: '2020-01-01T00:00:00Z' }),
    ],
    ['its rule gets tiers', charging({ ...byTokens, tiers: [{ above: 1, input: 100, output: 200 }] })],
    ['its rule estimates more input', charging({ ...byTokens, input_factor: 4 })],
  ])('is reserved and charged by the old price: %s', async (_case, edit, scene = {}) => {
    expect(await endOf(edit, scene)).toMatchObject({ held, charged: agreed, status: 'completed', limit: 78 });
  });

  it('stays free if it was accepted as free, even without a reservation', async () => {
    const limits = { ...defaultSettings.limits, countFree: false };
    const end = await endOf(charging(dearer), { charges: [free], settings: { limits } });
    expect(end).toMatchObject({ held: undefined, charged: 0n, status: 'completed' });
  });

  it('is charged per call if it was accepted so', async () => {
    const end = await endOf(charging(dearer), { charges: [byCall] });
    expect(end).toMatchObject({ held: 500_000_000n, charged: 500_000_000n, limit: 78 });
  });

  it.each<[string, number | undefined, number | undefined, bigint, bigint]>([
    ['becomes dearer', 0.08, 0.5, 80_000_000n, 80_000_000n],
    ['is disabled', 0.08, undefined, 80_000_000n, 0n],
    ['is enabled only now', undefined, 0.5, 0n, 0n],
  ])(
    'is charged the search price that it was accepted with: it %s',
    async (_case, before, after, amount, charge) => {
      const searching = (price: number | undefined): Partial<Settings> =>
        price === undefined
          ? {}
          : { search: { type: 'tavily', endpoint: 'https://search.test', results: 5, price } };
      const edit: Edit = (options) => void (options.settings = searching(after));
      const scene = { charges: [free], body: { model: 'web-m' }, search: () => Promise.resolve([]) };
      const end = await endOf(edit, { ...scene, settings: searching(before) });
      expect(end).toMatchObject({ held: amount, charged: charge, status: 'completed' });
    },
  );

  it('keeps the service tier factors that it was accepted with', async () => {
    const tiers = { ...byTokens, service_tiers: { flex: 0.5 } };
    const edit = charging({ ...byTokens, service_tiers: { flex: 50 } });
    const end = await endOf(edit, { charges: [tiers], body: { service_tier: 'flex' } });
    expect(end).toMatchObject({ held, charged: agreed / 2n });
  });

  const defaulting = (defaultOutputTokens: number): Scene => ({
    settings: { limits: { ...defaultSettings.limits, defaultOutputTokens } },
  });
  it.each<[string, Scene, Edit]>([
    ['of all models', defaulting(78), (options) => Object.assign(options, defaulting(400))],
    [
      'of its rule',
      { charges: [{ ...byTokens, default_output_tokens: 78 }] },
      charging({ ...byTokens, default_output_tokens: 400 }),
    ],
  ])('keeps the default output limit that it was accepted with: %s', async (_case, scene, edit) => {
    const end = await endOf(edit, { body: { max_output_tokens: undefined }, ...scene });
    expect(end).toMatchObject({ held, limit: 78, charged: agreed });
  });

  it.each<[string, Scene, Edit, number]>([
    [
      'maximum',
      { channels: [{ params: { max_output_tokens: 78 } }], body: { max_output_tokens: undefined } },
      (options) => void (options.channels = [{ params: { max_output_tokens: 400 } }]),
      400,
    ],
    ['minimum', {}, (options) => void (options.channels = [{ params: { set: { max_tokens: 450 } } }]), 450],
  ])('reserves for the limit of its channel when it runs: a larger %s', async (_case, scene, edit, limit) => {
    const covering = 22_000_000n + 2_000_000n * BigInt(limit);
    expect(await endOf(edit, scene)).toMatchObject({ held: covering, limit, charged: agreed });
  });
});

describe('a background response to an alias that is edited before it runs', () => {
  const channels = ['small', 'large'].map((model) => channelOf(model));
  const scene = (...models: string[]): Scene => ({
    channels,
    charges: ofAlias,
    settings: { aliases: best(...models) },
    body: { model: 'best', max_output_tokens: 20 },
  });
  const leadingTo =
    (...models: string[]): Edit =>
    (options) =>
      void (options.settings = { aliases: best(...models) });

  it.each<[string, string[], Edit, bigint]>([
    ['a dearer model is put first', ['small'], leadingTo('large', 'small'), 11_000_000n],
    ['the order is reversed', ['small', 'large'], leadingTo('large', 'small'), 11_000_000n],
    ['the first model is removed', ['small', 'large'], leadingTo('large'), 11_000_000n],
    ['all its models are replaced', ['small'], leadingTo('large'), 11_000_000n],
    ['it is deleted', ['small', 'large'], (options) => void (options.settings = {}), 11_000_000n],
    [
      'a model gets its name',
      ['small'],
      (options) => {
        options.channels = [...channels, channelOf('best')];
        options.charges = [...ofAlias, { ...dearer, id: 9, models: ['best'] }];
      },
      11_000_000n,
    ],
    [
      'a channel of its first model is disabled',
      ['small', 'large'],
      (options) => void (options.channels = [channelOf('large')]),
      110_000_000n,
    ],
  ])(
    'is answered by the models that the alias had when it was accepted: %s',
    async (_case, before, edit, charged) => {
      expect(await endOf(edit, scene(...before))).toMatchObject({ status: 'completed', charged, faults: [] });
    },
  );

  it.each([['best'], ['small']])('keeps the rights of its key, whose whitelist names %s', async (named) => {
    const keys = { [demoKey]: { row: keyRow({ store: true, models: [named] }) } };
    const end = await endOf(leadingTo('large'), { ...scene('small', 'large'), keys });
    expect(end).toMatchObject({ status: 'completed', charged: 11_000_000n });
  });

  it('stays a call to the model, even if an alias now has that name', async () => {
    const edit: Edit = (options) => {
      options.channels = [channelOf('large')];
      options.settings = { aliases: [{ name: 'small', models: ['large'], onContextLength: false }] };
    };
    const end = await endOf(edit, { ...scene('small'), body: { model: 'small', max_output_tokens: 20 } });
    expect(end).toMatchObject({ status: 'failed', charged: 0n, reason: 'no_channel' });
  });

  it('fails at no charge when no channel serves its models any more', async () => {
    const edit: Edit = (options) => void (options.channels = [channelOf('large')]);
    const end = await endOf(edit, scene('small'));
    expect(end).toMatchObject({ status: 'failed', charged: 0n, reason: 'no_channel', faults: [] });
  });
});

describe('a background response whose plan is edited before it runs', () => {
  const planOf = (model: string) => ({ level: 1, items: [{ id: 'chat', models: [model], value: 5 }] });

  it.each([
    ['its model is removed', [planOf('other')]],
    ['it is deleted', []],
  ])('is paid by the plan that it was accepted with: %s', async (_case, after) => {
    const account = AccountRow.parse({ account: 'acme', plan: { level: 1, since: '2020-01-01T00:00:00Z' } });
    const keys = { [demoKey]: { row: keyRow({ store: true }), account } };
    const edit: Edit = (options) => void (options.plans = after);
    const scene = { keys, plans: [planOf('m')], settings: { subscriptionEnabled: true } };
    expect(await endOf(edit, scene)).toMatchObject({ status: 'completed', charged: 0n });
  });
});
