/** The sums of `daily` that lists, plots and reports read: by month, by served model and channel, by minute. */
import { findBin } from '../../shared/billing/time-sketch.ts';
import { BatchWriteItemCommand } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Reading, OperatorPorts } from '../../shared/operate/operator-ports.ts';
import { emulatorClient, startEmulator, type Emulator } from '../support/emulator.ts';
import { buildMonthKey } from '../../shared/billing/daily-keys.ts';
import { LedgerRig, idAt, yuan } from './ledger-rig.ts';

let emulator: Emulator;
let rig: LedgerRig;
let ports: OperatorPorts;
beforeEach(async () => {
  emulator = await startEmulator();
  rig = await LedgerRig.start(emulator);
  ports = await rig.ports();
  return async () => rig.stop();
});

const tokens = { prompt_tokens: 12, completion_tokens: 40 };
const charge = yuan('0.003096');
const seconds = (iso: string): number => Date.parse(iso) / 1000;

async function rows<Row>(pages: AsyncIterable<Reading<Row>[]>): Promise<Row[]> {
  return (await Array.fromAsync(pages)).flat().flatMap((each) => ('row' in each ? [each.row] : []));
}

describe('the sums of a month', () => {
  it('cover all accounts, by the month in which calls started and grants were applied', async () => {
    await rig.grant('acme', '10');
    await rig.grant('b.1', '3');
    await rig.call('acme', idAt('2026-10-31T23:59:59Z'), { charge, ...tokens });
    await rig.call('acme', idAt('2026-11-01T00:00:00Z'), { charge, ...tokens, channel: 'openai' });
    await rig.call('acme', idAt('2026-11-30T23:59:59Z'), { charge: 0n, kind: 'released', end: 'failed' });
    await rig.call(
      'acme',
      idAt('2026-11-02T00:00:00Z'),
      { charge: 0n, ...tokens },
      { slot: 'chat@2026-11-05' },
    );
    expect(await rows(ports.ledger.monthAccounts('2026-11'))).toEqual([
      {
        account: 'acme',
        month: '2026-11',
        firstDay: '2026-11-01',
        figures: {
          counts: {
            calls: 3,
            failures: 1,
            plan_calls: 1,
            grants: 1,
            prompt_tokens: 24,
            completion_tokens: 80,
          },
          amounts: { charged: charge, granted: yuan('10') },
        },
      },
      {
        account: 'b.1',
        month: '2026-11',
        figures: { counts: { grants: 1 }, amounts: { granted: yuan('3') } },
      },
    ]);
    const [october] = await rows(ports.ledger.monthAccounts('2026-10'));
    expect(october?.figures.counts.calls).toBe(1);
  });

  it('are read for the given accounts and months, even if that takes several requests', async () => {
    const names = Array.from({ length: 130 }, (_, at) => `account ${at}`);
    const items = names.map((name) => ({ ...buildMonthKey('2026-11', name), calls: 1 }));
    await putMany(items);
    const wanted = ['absent', ...names, names[0] ?? ''].map((account) => ({ account, month: '2026-11' }));
    const found = await ports.ledger.accountMonths([...wanted, { account: 'account 0', month: '2026-10' }]);
    expect(found.flatMap((each) => ('row' in each ? [each.row.account] : [])).toSorted()).toEqual(
      names.toSorted(),
    );
    // A name that cannot be a key of the table has no sums; the others are read.
    const long = await ports.ledger.accountMonths([
      { account: 'a'.repeat(1100), month: '2026-11' },
      { account: 'account 1', month: '2026-11' },
    ]);
    expect(long).toMatchObject([{ row: { account: 'account 1' } }]);
  });

  it('that cannot be read are reported next to the others', async () => {
    await putMany([
      { ...buildMonthKey('2026-11', 'bad'), calls: 1.5 },
      { ...buildMonthKey('2026-11', 'good'), calls: 1 },
      { ...buildMonthKey('2026-11', 'text'), charged: 'much' },
    ]);
    const [bad, good, text] = (await Array.fromAsync(ports.ledger.monthAccounts('2026-11'))).flat();
    expect(bad).toMatchObject({
      key: expect.stringMatching(/^daily month\.\d+#2026-11 account#bad$/) as string,
      problem: expect.any(String) as string,
    });
    expect(good).toMatchObject({ row: { account: 'good' } });
    expect(text).toMatchObject({ problem: 'daily: charged is not what functions write' });
  });
});

describe('balances', () => {
  it('of many accounts are read at once, with the shards of each added up', async () => {
    for (const account of ['one', 'two', 'parts', 'endless']) await rig.grant(account, '8');
    await rig.call('one', idAt('2026-11-10T10:00:00Z'), { charge, ...tokens });
    await rig.split('parts', 4);
    await rig.damage('quotas', { account: 'two' }, 'granted', 'ten');
    await rig.damage('quotas', { account: 'endless' }, 'made', 1e9);
    const before = ports.traffic().requests;
    const found = await ports.ledger.quotas(['one', 'two', 'parts', 'endless', 'absent', 'one']);
    const balances = found.map((each): [string, unknown] =>
      'row' in each ? [each.row.account, [each.row.available, each.row.last?.at]] : [each.key, each.problem],
    );
    expect(Object.fromEntries(balances)).toEqual({
      one: [yuan('8') - charge, 1_795_000_000],
      parts: [yuan('8'), undefined],
      two: expect.stringContaining('granted is not a whole number') as string,
      endless: 'quotas: 1000000000 is an invalid number of shards',
    });
    // One request for all accounts, one for the other shards.
    expect(ports.traffic().requests - before).toBe(2);
    expect(await ports.ledger.quota('endless')).toHaveProperty(
      'problem',
      'quotas: 1000000000 is an invalid number of shards',
    );
  });
});

describe('sums of served calls', () => {
  it('are by day, public model and channel, whatever the channel is named, and show calls without a price', async () => {
    const at = '2026-11-10T10:00:00Z';
    const served = { ...tokens, charge, upstream_model: 'other', bought: 7n, first_content_ms: 300 };
    await rig.grant('acme', '10');
    await rig.call('acme', idAt(at, '1'), { ...served, channel: 'a#b' });
    await rig.call(
      'acme',
      idAt(at, '2'),
      { ...served, channel: 'a#b', charge: 0n },
      { slot: 'chat@2026-11-05' },
    );
    await rig.call('acme', idAt(at, '3'), { charge: 0n, kind: 'released', end: 'failed' });
    await rig.call('acme', idAt('2026-11-12T00:00:00Z'), { ...served, channel: '-' });
    const days = await rows(ports.ledger.served({ from: '2026-11-10', to: '2026-11-11' }));
    expect(days.map(({ day, model, channel }) => [day, model, channel])).toEqual([
      ['2026-11-10', 'gpt-4o', undefined],
      ['2026-11-10', 'gpt-4o', 'a#b'],
    ]);
    expect(days.map(({ figures }) => figures)).toMatchObject([
      { counts: { calls: 1, failures: 1, unpaid_calls: 1 }, amounts: {} },
      {
        counts: {
          calls: 2,
          plan_calls: 1,
          prompt_tokens: 24,
          unpaid_calls: 1,
          unpaid_prompt_tokens: 12,
          unpaid_completion_tokens: 40,
          attempts: 2,
          [findBin(300)]: 2,
        },
        amounts: { charged: charge, bought: 14n },
      },
    ]);
    const all = await rows(ports.ledger.served({ from: '2026-11-10', to: '2026-11-12' }));
    expect(all.at(-1)).toMatchObject({ day: '2026-11-12', channel: '-' });
  });
});

describe('the sums of minutes', () => {
  it('count the calls that ended in each minute, across midnight, and expire after two days', async () => {
    await rig.grant('acme', '10');
    const ends = [
      '2026-11-10T23:58:10Z',
      '2026-11-10T23:59:10Z',
      '2026-11-10T23:59:50Z',
      '2026-11-11T00:00:00Z',
    ];
    for (const [at, end] of ends.entries())
      await rig.call('acme', idAt('2026-11-10T23:00:00Z', String(at)), {
        charge,
        ...tokens,
        at: seconds(end),
      });
    const minutes = await rows(
      ports.ledger.minutes(Date.parse('2026-11-10T23:59:00Z'), Date.parse('2026-11-11T00:01:00Z')),
    );
    expect(
      minutes.map(({ startMs, figures }) => [new Date(startMs).toISOString(), figures.counts.calls]),
    ).toEqual([
      ['2026-11-10T23:59:00.000Z', 2],
      ['2026-11-11T00:00:00.000Z', 1],
    ]);
    expect(minutes[0]?.figures.amounts.charged).toBe(2n * charge);
    const item = await rig.row('daily', { id: 'minutes#2026-11-10', period: 'minute#2026-11-10T23:59' });
    expect(item?.['expires']).toBe(seconds('2026-11-12T23:59:00Z'));
  });
});

async function putMany(items: Record<string, unknown>[]): Promise<void> {
  const client = emulatorClient(emulator.endpoint);
  for (let at = 0; at < items.length; at += 25) {
    const puts = items.slice(at, at + 25).map((item) => ({ PutRequest: { Item: marshall(item) } }));
    await client.send(new BatchWriteItemCommand({ RequestItems: { 'relay-daily': puts } }));
  }
  client.destroy();
}
