/** Runs `restore` on an emulator with a double of point-in-time recovery: on damaged tables, and after killed runs. */
import { DeleteItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  bucketOf,
  findCloseRow,
  buildLateRow,
  formatLedgerPartition,
} from '../../shared/billing/ledger-row.ts';
import { firstCounter } from '../../shared/billing/shares.ts';
import { restoreSteps } from '../../shared/operate/restore/restore.ts';
import { RecoverableTables } from '../infra/loopback/recoverable-tables.ts';
import { emulatorClient } from '../support/emulator.ts';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.ts';
import { idAt, LedgerRig, yuan } from './ledger-rig.ts';
import { runOps, type OpsRun } from './run-ops.ts';

const call = { charge: yuan('0.003096'), prompt_tokens: 12, completion_tokens: 40 };
/** Unix seconds. A row contains the end of its call. */
const closedAt = (iso: string): number => Date.parse(iso) / 1000;
const at = '2026-11-10T12:00:00Z';
const [before, after] = ['2026-11-10T10:00:00Z', '2026-11-10T14:00:00Z'];
const [later, latest] = ['2026-11-10T15:00:00Z', '2026-11-10T16:00:00Z'];

let rig: LedgerRig;
let client: DynamoDBClient;
let recovery: RecoverableTables;
let proxy: FaultProxy;
/** Number of writes before the tool counts as killed. */
let writesLeft: number;
const writing = /PutItem|UpdateItem|TransactWriteItems|RestoreTable|DeleteTable/;

beforeEach(async () => {
  rig = await LedgerRig.start();
  const endpoint = String((await rig.ports()).target.endpoint);
  client = emulatorClient(endpoint);
  recovery = new RecoverableTables(client);
  writesLeft = Infinity;
  proxy = await startFaultProxy({
    upstream: endpoint,
    refuse: (request, body) => {
      const target = String(request.headers['x-amz-target']);
      if (writesLeft <= 0) throw new Error('killed');
      if (writing.test(target)) writesLeft -= 1;
      return recovery.answer(target, body);
    },
  });
  rig.now = before;
  await rig.grant('acme', '10');
  await rig.grant('other', '5');
  await rig.call('acme', idAt(before), { ...call, at: closedAt(before) });
  await recovery.remember(at);
  rig.now = after;
  const large = { charge: yuan('0.3096'), prompt_tokens: 1200, completion_tokens: 4000 };
  await rig.call('acme', idAt(after), { ...large, at: closedAt(after) });
  await rig.put('grants', { account: 'acme', grant_id: 'later', amount: '2', reason: 'paid' });
  await rig.applyGrants();
});
afterEach(async () => {
  client.destroy();
  await proxy.close();
  await rig.stop();
});

const restore = (words = '', to = at): Promise<OpsRun> =>
  runOps(`restore --to ${to} --wait 0 --yes ${words}`.trim(), { AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint });

let intact: Promise<string[]> | undefined;
/** Each test begins with the same books, and reading them takes 70 requests. */
const intactBooks = (): Promise<string[]> => (intact ??= books());

/** The account's balance and the audit's result. */
async function books(): Promise<string[]> {
  const { code, output } = await rig.ops('audit --wait 0');
  const money = async (account: string) => {
    const item = await rig.item(account).catch(() => undefined);
    return item && `${account} ${item.available} ${item.spent} ${item.granted} ${item.settled}`;
  };
  return [String(await money('acme')), String(await money('other')), `${code} ${output.split('\n').at(-2)}`];
}

async function copies(): Promise<string[]> {
  const lines: string[] = [];
  for (const table of ['quotas', 'ledger', 'grants', 'payments'])
    lines.push(
      ...(await recovery.rows(`relay-restore-20261110120000-${table}`).then(
        () => [table],
        () => [],
      )),
    );
  return lines;
}

/** Damages the tables in one way each, as manual edits or faulty programs do. */
const spoilers: Record<string, () => Promise<unknown>> = {
  'an increased balance': () =>
    rig
      .damage('quotas', { account: 'acme' }, 'available', 1_000_000_000_000)
      .then(() => rig.damage('quotas', { account: 'acme' }, 'granted', 1_000_000_000_000)),
  'an unreadable balance': () => rig.damage('quotas', { account: 'acme' }, 'spent', 'much'),
  'a missing balance': () => rig.remove('quotas', { account: 'acme' }),
  'missing ledger rows and their grant': async () => {
    await rig.remove('ledger', { account: 'acme', id: idAt(before) });
    await rig.remove('ledger', { account: 'acme', id: 'grant#start-acme' });
    await rig.remove('grants', { account: 'acme', grant_id: 'start-acme' });
  },
  'a changed charge': () => rig.damage('ledger', { account: 'acme', id: idAt(before) }, 'charge', 0),
  'everything of an account': async () => {
    await rig.remove('quotas', { account: 'acme' });
    await rig.remove('ledger', { account: 'acme', id: idAt(before) });
    await rig.damage('ledger', { account: 'acme', id: 'grant#start-acme' }, 'amount', 1000);
  },
};

describe('a restore', () => {
  it.each(Object.entries(spoilers))(
    'of %s loses no charge and no grant since the second, and all balances match',
    async (_name, spoil) => {
      const right = await intactBooks();
      expect(right[2]).toContain('all balances match');
      await spoil();
      expect((await books())[2]).not.toContain('all balances match');
      const run = await restore();
      expect(run).toMatchObject({ code: 0 });
      expect(run.output).toContain('audit: all balances match');
      await rig.applyGrants();
      expect(await books()).toEqual(right);
      expect(await copies()).toEqual([]);
      expect(await rig.row('settings', { name: 'relay_closed' })).toMatchObject({ value: false });
    },
  );

  it('that is killed at any write has the same result when it is repeated', async () => {
    const right = await intactBooks();
    await spoilers['everything of an account']?.();
    let kills = 0;
    for (let run = 0; ; run += 1) {
      writesLeft = 1 + (run % 3);
      const ended = await restore();
      writesLeft = Infinity;
      if (ended.code === 0) break;
      kills += 1;
      expect(kills).toBeLessThan(30);
    }
    expect(kills).toBeGreaterThan(5);
    expect(await books()).toEqual(right);
    expect(await copies()).toEqual([]);
    expect(await rig.row('settings', { name: 'relay_closed' })).toMatchObject({ value: false });
  });

  it('of an account in several shards moves the balance to the first, and triggers no row of the function `ledger`', async () => {
    await rig.split('acme', 4);
    const right = await books();
    await rig.damage('quotas', { account: 'acme#2' }, 'available', 5);
    const seen = await Promise.all([0, 1, 2, 3].map((part) => rig.item('acme', part)));
    expect(await restore()).toMatchObject({ code: 0 });
    const now = await Promise.all([0, 1, 2, 3].map((part) => rig.item('acme', part)));
    expect(now.map((item) => item?.available)).toEqual([yuan('11.687304'), 0n, 0n, 0n]);
    expect(now[0]).toMatchObject({
      shardCount: 1,
      highestShardCount: 4,
      spent: yuan('0.312696'),
      granted: yuan('12'),
    });
    expect(now.map((item, part) => findCloseRow(seen[part], item))).toEqual(Array(4).fill(undefined));
    expect((await books())[2]).toEqual(right[2]);
  });

  const company = async () => {
    const ended = (iso: string) => ({ ...call, at: closedAt(iso) });
    await rig.call('company', idAt(before, 'b'), ended(before), { metered: true }, firstCounter + 3);
    await rig.call('company', idAt(before, 'c'), ended(before), { metered: true }, firstCounter + 700);
    // This one was charged late: shard 0 records that, and the row is in the partition of the counter.
    const id = idAt(before, 'e');
    const [part, open] = [firstCounter + 5, { metered: true } as const];
    await rig.call(
      'company',
      id,
      { charge: yuan('0.018'), kind: 'expired', at: closedAt(before) },
      open,
      part,
    );
    const closeRecord = { id, kind: 'settled', charge: yuan('0.09'), at: closedAt(before) } as const;
    const counts = { prompt_tokens: 1000, completion_tokens: 1000, end: 'completed' };
    const late = {
      account: 'company',
      part,
      entry: rig.entry(open),
      closeRecord: { ...closeRecord, ...counts },
    };
    const difference = yuan('0.072');
    await rig.quotas.chargeLate({ difference, row: buildLateRow(late, difference) });
    await recovery.remember(later);
    await rig.call('company', idAt(latest, 'd'), ended(latest), { metered: true }, firstCounter + 3);
  };

  it.each([
    ['are missing with all other items of the account', [undefined, 3, 700]],
    ['exist while its first item is missing', [undefined]],
    ['are unreadable', [3]],
  ])(
    'of a metered account whose counters %s restores the cost of each call, from no balance',
    async (_name, gone) => {
      await company();
      for (const counter of gone) {
        const account = counter === undefined ? 'company' : `company#${firstCounter + counter}`;
        if (gone.length === 1 && counter !== undefined)
          await rig.damage('quotas', { account }, 'spent', 'much');
        else await rig.remove('quotas', { account });
      }
      expect((await books())[2]).not.toContain('all balances match');
      const run = await restore('', later);
      expect(run.output).toContain('audit: all balances match');
      const ports = await rig.ports();
      const spent = 3n * call.charge + yuan('0.09');
      const money = { available: 0n, granted: 0n, spent, metered: spent, settled: 5 };
      expect(await ports.ledger.quota('company')).toMatchObject({ row: money });
      const from = { account: 'company', fromMs: Date.parse(before) };
      expect((await Array.fromAsync(ports.ledger.ledger(from))).flat()).toHaveLength(5);
    },
  );

  it('of an intact metered account changes nothing, and waits for no row of it', async () => {
    await company();
    const { output } = await restore('', later);
    expect(output).toContain('balances: nothing to do');
    expect(output).not.toContain('no ledger row');
  });

  it('neither charges a balance for a metered call whose row was lost, nor refunds a charge that no balance paid', async () => {
    await company();
    await rig.remove('quotas', { account: 'company' });
    const lost = idAt(before, 'b');
    const partition = formatLedgerPartition({ account: 'company', bucket: bucketOf(lost, firstCounter) });
    await recovery.forget(later, 'relay-ledger', lost);
    await rig.remove('ledger', { account: partition, id: lost });
    await restore('--forgive', later);
    const whole = await (await rig.ports()).ledger.quota('company');
    expect(whole).toMatchObject({
      row: { available: 0n, granted: 0n, metered: 3n * call.charge + yuan('0.09') },
    });
    expect(
      await rig.row('grants', { account: 'company', grant_id: 'restore-20261110150000' }),
    ).toBeUndefined();
  });

  it('reopens the relay with a charge whose row was lost before the second only if its account is accepted, and restores nothing else of it', async () => {
    const right = await intactBooks();
    await recovery.forget(at, 'relay-ledger', idAt(before));
    await rig.remove('ledger', { account: 'acme', id: idAt(before) });
    const finding = "acme: spent is 0.312696, but the ledger's charges add up to 0.3096";
    const isClosed = async () => (await rig.row('settings', { name: 'relay_closed' }))?.['value'];
    for (const words of ['', '--accept other']) {
      const refused = await restore(words);
      expect([refused.code, refused.output, await isClosed()]).toEqual([
        1,
        expect.stringContaining(`audit: ${finding}`),
        true,
      ]);
    }
    await rig.put('grants', { account: 'acme', grant_id: 'waits', amount: '1', reason: 'paid' });
    const other = await restore('--accept acme');
    expect([other.code, other.output, await isClosed()]).toEqual([
      1,
      expect.stringContaining('audit: acme: grant waits is not applied'),
      true,
    ]);
    await rig.remove('grants', { account: 'acme', grant_id: 'waits' });
    const drill = await restore('--drill --accept acme');
    expect([drill.code, drill.output]).toEqual([
      0,
      expect.stringContaining('check: accepted: acme: spent is'),
    ]);
    const accepted = await restore('--accept acme');
    expect([accepted.code, accepted.output]).toEqual([
      0,
      expect.stringContaining(`audit: accepted: ${finding}`),
    ]);
    expect([await isClosed(), await copies(), (await books()).slice(0, 2)]).toEqual([
      false,
      [],
      right.slice(0, 2),
    ]);
  });

  it('changes nothing in intact tables, and reports that', async () => {
    const right = await intactBooks();
    const { output } = await restore();
    expect(output).toContain('rows: nothing to do');
    expect(output).toContain('balances: nothing to do');
    expect(await books()).toEqual(right);
  });

  it('leaves the relay closed if somebody else had closed it', async () => {
    await rig.put('settings', { name: 'relay_closed', value: true });
    expect(await restore()).toMatchObject({ code: 0 });
    expect(await rig.row('settings', { name: 'relay_closed' })).toMatchObject({ value: true });
  });

  it('stops if somebody opens the relay during the question whether to close it', async () => {
    const input = { atMs: Date.parse(at), copy: 'c', others: [], forgive: false, accepted: [], waitMs: 0 };
    const waiting = (): void => undefined;
    const [close] = await restoreSteps({ ports: await rig.ports(), input, waiting }, false);
    const prepared = await close?.prepare();
    await rig.put('settings', { name: 'relay_closed', value: false });
    await expect(prepared?.carryOut()).rejects.toThrow(
      'someone else changed the setting relay_closed in the meantime',
    );
  });

  it('does not wait forever for a copy that AWS abandoned', async () => {
    const ports = await rig.ports();
    const made: string[] = [];
    const copies = {
      ...ports.copies,
      window: async () => ({ fromMs: 0, toMs: Infinity }),
      status: async () => undefined,
      make: async (_: string, table: string) => void made.push(table),
    };
    const clock = { ...ports.clock, sleep: async () => undefined };
    const input = { atMs: Date.parse(at), copy: 'c', others: [], forgive: false, accepted: [], waitMs: 0 };
    const run = { ports: { ...ports, copies, clock }, input, waiting: () => undefined };
    const steps = await restoreSteps(run, true);
    const prepared = await steps.find(({ name }) => name === 'copies')?.prepare();
    await expect(prepared?.carryOut()).rejects.toThrow(
      'the copy of quotas disappeared before it was complete: re-run the command',
    );
    expect(made).toEqual(['quotas', 'ledger', 'grants', 'payments']);
  });

  it('rejects a second to which not all tables can be restored, and a table without recovery', async () => {
    const early = await runOps('restore --to 2026-11-01 --wait 0 --yes', {
      AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint,
    });
    expect(early.code).toBe(1);
    expect(early.errors).toContain("can't be restored to 2026-11-01T00:00:00Z: choose a time from");
    recovery.off.add('relay-grants');
    const off = await restore();
    expect(off.errors).toContain('relay-grants has no point-in-time recovery');
  });

  it('does not wait for calls, but continues only if none is open', async () => {
    await rig.reserve('acme', idAt('2026-11-10T15:00:00Z', 'open'));
    const { code, errors } = await restore();
    expect(code).toBe(1);
    expect(errors).toContain('calls of acme are still in flight: they expire within minutes; re-run then');
  });

  it('keeps reservations open for the sweeper that were open then and have no row since', async () => {
    const id = idAt('2026-11-10T11:59:00Z', 'lost');
    await rig.reserve('other', id, { until: closedAt('2026-11-10T12:10:00Z') });
    await recovery.remember('2026-11-10T12:00:30Z');
    await rig.remove('quotas', { account: 'other' });
    const run = await runOps('restore --to 2026-11-10T12:00:30Z --wait 0 --yes', {
      AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint,
    });
    expect(run.output).toContain(`request ${id} is still open, though it expired`);
    expect((await rig.item('other'))?.open.has(id)).toBe(true);
    expect((await rig.item('other'))?.available).toBe(yuan('4.7'));
  });

  it('refunds charges of calls after the second once, by a grant, and keeps their rows', async () => {
    const run = await restore('--forgive');
    // The function `grants` did not run in between.
    expect(run.output).toContain('grant restore-20261110120000 is not applied');
    await rig.applyGrants();
    expect(await restore('--forgive')).toMatchObject({ code: 0 });
    expect(await restore('--forgive')).toMatchObject({ code: 0 });
    const item = await rig.item('acme');
    expect(item?.available).toBe(yuan('12') - yuan('0.003096'));
    expect(item?.granted).toBe(yuan('12.3096'));
    expect(await rig.row('ledger', { account: 'acme', id: idAt(after) })).toBeDefined();
    expect((await books())[2]).toContain('all balances match');
  });

  it('shows its first steps with --dry-run, and writes nothing', async () => {
    writesLeft = 0.5;
    const run = await runOps(`restore --to ${at} --wait 0 --dry-run`, {
      AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint,
    });
    expect(run).toMatchObject({ code: 0 });
    expect(run.output).toContain(
      'copies: restore relay-quotas, relay-ledger, relay-grants, relay-payments as of',
    );
    expect(writesLeft).toBe(0.5);
  });
});

describe('a drill', () => {
  it('restores copies, compares them with today’s ledger, and deletes them', async () => {
    const run = await restore('--drill');
    expect(run).toMatchObject({ code: 0 });
    expect(run.output).toContain('check: 2 accounts of the copy match the ledger');
    expect(await copies()).toEqual([]);
    expect(await rig.row('settings', { name: 'relay_closed' })).toBeUndefined();
  });

  it('lists rows that are missing since', async () => {
    await client.send(
      new DeleteItemCommand({
        TableName: 'relay-ledger',
        Key: { account: { S: 'acme' }, id: { S: idAt(before) } },
      }),
    );
    const run = await restore('--drill');
    expect(run.code).toBe(1);
    expect(run.output).toContain('lost since then: ledger: restore 1 deleted row');
    expect(await copies()).toHaveLength(4);
  });
});
