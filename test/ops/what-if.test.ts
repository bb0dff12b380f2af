/** The effect that an edit would have had on the calls of the last days, by the operators' tool on an emulator. */
import { beforeEach, describe, expect, it } from 'vitest';
import { renderState } from '../../infra/ops/console/pages/channels.ts';
import { viewChannels } from '../../shared/operate/channels/list-channels.ts';
import { timeText } from '../../shared/wire/ids.ts';
import { startEmulator } from '../support/emulator.ts';
import { ConfigRig } from './config-rig.ts';
import { LedgerRig, yuan } from './ledger-rig.ts';

let ledger: LedgerRig;
let config: ConfigRig;
beforeEach(async () => {
  const emulator = await startEmulator();
  ledger = await LedgerRig.start(emulator);
  config = await ConfigRig.start(emulator);
  await ledger.put('charges', charge());
  await ledger.put('channels', channel('main', ['gpt-4o', 'mini']), channel('spare', ['gpt-4o']));
  await config.compile();
  return async () => config.stop();
});

const charge = (changes: object = {}) => ({
  id: 1,
  type: 'token-billing',
  models: ['gpt-4o', 'mini'],
  input: 0.018,
  output: 0.072,
  ...changes,
});
const channel = (id: string, models: string[], changes: object = {}) => ({
  id,
  endpoint: 'https://api.example.com/v1',
  models,
  state: true,
  ...changes,
});

let calls = 0;
const call = async (
  account: string,
  charged: string,
  changes: object = {},
  beganMs = Date.now(),
): Promise<void> => {
  calls += 1;
  const id = timeText(beganMs) + String(calls).padStart(16, '0');
  const facts = { prompt_tokens: 1000, completion_tokens: 1000, channel: 'main', ...changes };
  await ledger.call(account, id, { charge: yuan(charged), ...facts });
};

interface Shown {
  models: { model: string; revenue: { before: object; after: object }; lost: boolean }[];
  total: { charged: string; revenue: { before: object; after: object } };
  lost: string[];
  free: string[];
  unpriced: string[];
  accounts: { looked_at: number; of: number; empty_sooner: { account: string; days_after: number }[] };
}

async function shown(rows: object, ...more: string[]): Promise<Shown> {
  const { output } = await ledger.ops(['what-if', config.file('edit.json', rows), '--json', ...more]);
  return JSON.parse(output) as Shown;
}

const exact = (amount: string) => ({ low: amount, high: amount, within_percent: 0 });

describe('what-if', () => {
  it('reports the actual charges for rows that are already in the tables', async () => {
    await ledger.grant('acme', '10');
    await call('acme', '0.09');
    await call('acme', '0.0905', { prompt_tokens: 1001 });
    const { total, lost, free, unpriced, accounts } = await shown({ charges: [charge()] });
    expect(total).toMatchObject({
      charged: '0.1805',
      revenue: { before: exact('0.1805'), after: exact('0.1805') },
    });
    expect({ lost, free, unpriced, looked: accounts.looked_at }).toEqual({
      lost: [],
      free: [],
      unpriced: [],
      looked: 0,
    });
  });

  it('computes another price from sums, and finds the account that would run out sooner', async () => {
    await ledger.grant('acme', '1');
    await ledger.grant('idle', '1');
    await call('acme', '0.09');
    const { models, accounts } = await shown({ charges: [charge({ input: 0.18, output: 0.72 })] });
    expect(models[0]?.revenue).toEqual({ before: exact('0.09'), after: exact('0.9') });
    expect(accounts).toMatchObject({
      // A customer without calls is not counted.
      looked_at: 1,
      of: 1,
      // Its first call was today, so it is judged by today.
      empty_sooner: [{ account: 'acme', days_after: 1 }],
    });
  });

  it('compares as of the start of an announced price', async () => {
    await ledger.grant('acme', '1');
    await call('acme', '0.09');
    const from = '2099-01-01T00:00:00Z';
    const file = config.file('edit.json', {
      charges: [charge({ id: 2, from, input: 0.036, output: 0.144 })],
    });
    const { output } = await ledger.ops(`what-if ${file}`);
    expect(output).toContain(`with the prices of ${from}`);
    expect(output).toMatch(/gpt-4o +1 +0\.09 +0\.18 +exact/);
  });

  it('compares as of the start of a group price', async () => {
    await ledger.grant('acme', '1');
    await call('acme', '0.09');
    const gold = [{ models: ['gpt-4o'], factor: 2, from: '2099-01-01T00:00:00Z' }];
    await ledger.put('accounts', { account: 'acme', price_group: 'gold' });
    const { models, total } = await shown({ settings: [{ name: 'price_groups', value: { gold } }] });
    expect(models[0]?.revenue).toEqual({ before: exact('0.09'), after: exact('0.18') });
    expect(total.charged).toBe('0.09');
  });

  it('computes a group price only from the calls of its members', async () => {
    const edit = {
      settings: [{ name: 'price_groups', value: { gold: [{ models: ['gpt-4o'], factor: 3 }] } }],
    };
    await ledger.put('accounts', { account: 'member', price_group: 'gold' }, { account: 'other' });
    for (const account of ['member', 'other', 'other']) {
      await ledger.grant(account, '1');
      await call(account, '0.09');
    }
    const { models, accounts, ...more } = await shown(edit);
    expect(models[0]?.revenue).toEqual({ before: exact('0.27'), after: exact('0.45') });
    expect(accounts).toMatchObject({ looked_at: 1, of: 1, empty_sooner: [{ account: 'member' }] });
    expect(more).toMatchObject({ empty_groups: [] });
    await ledger.put('accounts', { account: 'member' });
    const { output } = await ledger.ops(['what-if', config.file('edit.json', edit)]);
    expect(output).toContain('Price groups without a customer: gold');
    expect(output).not.toContain('run out sooner');
  });

  it('lists models that lose their last channel, become free, or lose their price', async () => {
    await ledger.grant('acme', '1');
    await call('acme', '0.09', { model: 'mini' });
    const off = await shown({ channels: [channel('main', ['gpt-4o', 'mini'], { state: false })] });
    expect(off).toMatchObject({ lost: ['mini'], free: [] });
    expect(off.models).toMatchObject([{ model: 'mini', lost: true, revenue: { after: exact('0') } }]);
    const free = { id: 1, type: 'non-billing', models: ['gpt-4o', 'mini'] };
    expect(await shown({ charges: [free] })).toMatchObject({ free: ['gpt-4o', 'mini'], unpriced: [] });
    expect(await shown({ charges: [charge({ models: ['gpt-4o'] })] })).toMatchObject({
      free: ['mini'],
      unpriced: ['mini'],
    });
    const refused = {
      settings: [{ name: 'unpriced_models', value: 'refuse' }],
      charges: [charge({ models: [] })],
    };
    expect(await shown(refused)).toMatchObject({ free: [], unpriced: ['gpt-4o', 'mini'] });
  });

  it('assigns the calls of a removed channel to another one, and shows its cost', async () => {
    const cost = { '*': { input: 0.01, output: 0.02 } };
    await ledger.put('channels', channel('spare', ['gpt-4o'], { cost }));
    await config.compile();
    await ledger.grant('acme', '1');
    await call('acme', '0.09', { bought: yuan('0.05') });
    const { output } = await ledger.ops([
      'what-if',
      config.file('edit.json', { channels: [channel('main', ['mini'])] }),
    ]);
    expect(output).toMatch(/gpt-4o +1 +0\.09 +0\.09 +exact +0\.05 +~0\.03/);
  });

  it('fails for an invalid row, and writes nothing', async () => {
    const before = await ledger.row('charges', { id: 1 });
    const { code, errors } = await ledger.ops([
      'what-if',
      config.file('edit.json', { charges: [charge({ input: 'much' })] }),
    ]);
    expect({ code, errors }).toMatchObject({
      code: 1,
      errors: expect.stringContaining('charges 1') as string,
    });
    expect(await ledger.row('charges', { id: 1 })).toEqual(before);
  });

  it('prints its models as CSV', async () => {
    await ledger.grant('acme', '1');
    await call('acme', '0.09');
    const { output } = await ledger.ops([
      'what-if',
      config.file('edit.json', { charges: [charge()] }),
      '--csv',
    ]);
    expect(output.split('\n')[1]).toBe('gpt-4o,1,0.09,0.09,0.09,0.09,0.09,0,0,0,0,1,false,false');
  });
});

describe('channel list', () => {
  it('reports only channels as failing whose last calls all failed, as the console does', async () => {
    const failed = { kind: 'released', end: 'failed', channel: 'spare' } as const;
    await ledger.grant('acme', '1');
    await call('acme', '0.09', { channel: 'spare' }, Date.now() - 86_400_000);
    await call('acme', '0', failed);
    await call('acme', '0', { ...failed, model: 'other' });
    const { output, errors } = await ledger.ops('channel list');
    expect(output).toMatch(/^spare +failing /m);
    expect(errors).toMatch(
      /^spare is failing: none of its 2 calls on .* succeeded\. Run `channel test spare`\.$/m,
    );
    const shown = await viewChannels(await ledger.ports());
    const states = shown.channels.map((each) => [
      each.id,
      (renderState(each, Date.now()) as { toString(): string }).toString(),
    ]);
    expect(states).toContainEqual(['spare', expect.stringContaining('failing')]);
    await call('acme', '0.09', { channel: 'spare' });
    const listed: unknown = JSON.parse((await ledger.ops('channel list --json')).output);
    expect(listed).toContainEqual(expect.objectContaining({ id: 'spare', state: 'on', failing: false }));
  });

  it('shows when channels were last called and last failed, and which are idle', async () => {
    await ledger.grant('acme', '1');
    await call('acme', '0.09');
    await call('acme', '0', { kind: 'released', end: 'failed' });
    const today = new Date().toISOString().slice(0, 10);
    const { output } = await ledger.ops('channel list --json');
    expect(JSON.parse(output)).toMatchObject([
      { id: 'main', last_call: today, last_failure: today, attempts_14d: 2, failures_14d: 1, idle: false },
      // The sums start today, as after an upgrade.
      { id: 'spare', last_call: null, last_failure: null, attempts_14d: 0, idle: null },
    ]);
    expect((await ledger.ops('channel list')).errors).not.toMatch(/no call|fails/);
    const dayMs = 86_400_000;
    await call('acme', '0.09', { channel: 'gone' }, Date.now() - 12 * dayMs);
    const { errors } = await ledger.ops('channel list');
    expect(errors).toMatch(/^spare: no calls since \d{4}-/m);
    expect(errors).not.toContain('main: no calls since');
    expect(await ledger.row('channels', { id: 'spare' })).not.toHaveProperty('_warning');
  });
});
