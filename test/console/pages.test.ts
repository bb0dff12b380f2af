import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { viewCustomer } from '../../shared/operate/customers/customer-view.ts';
import { watchOverview } from '../../shared/operate/overview.ts';
import { physicalNameOf } from '../../shared/tables/table-names.ts';
import { runOps } from '../ops/run-ops.ts';
import { costOf, enter, startConsoleRig, type ConsoleRig, type Visitor } from './console-rig.ts';
import {
  accountAt,
  buildRelay,
  formPages,
  invoicedMonth,
  invoiceOf,
  modelAt,
  put,
  readPages,
  smallPages,
} from './large-relay.ts';

const nowMs = Date.now();
let rig: ConsoleRig;
let visitor: Visitor;
beforeAll(async () => {
  rig = await startConsoleRig(buildRelay({ nowMs, accounts: 2000, models: 300, channels: 8, rows: 600 }));
  visitor = await enter(await rig.serve());
  // 20,000 items, which take long on a busy machine.
}, 180_000);
afterAll(async () => rig.stop());

const first = accountAt(0);
const dayBack = (days: number): string => new Date(nowMs - days * 86_400_000).toISOString().slice(0, 10);
const nextIn = (page: string): string | undefined =>
  /<a href="([^"]+)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&');

/** All pages of a list, from its first. */
async function* pagesFrom(path: string): AsyncGenerator<string> {
  for (let at: string | undefined = path; at !== undefined;) {
    const page = await visitor.page(at);
    yield page;
    at = nextIn(page);
  }
}

/** The first cells of a table's rows. */
const headsIn = (page: string, caption: string): string[] => {
  const body = new RegExp(`${caption}[^]*?<tbody[^>]*>([^]*?)</tbody>`).exec(page)?.[1] ?? '';
  return [...body.matchAll(/<th scope="row"[^>]*>\s*([\w/ -]+?)\s*</g)].map(([, name]) => String(name));
};

describe('with 300 models, 2,000 customers and a long ledger', () => {
  it.each([...readPages, ...formPages, ...smallPages, '?models=all'])(
    'the page /%s needs at most 10 requests and 2 MB (4 MB for channels), shows their number, and has at most 150 KB with its scripts',
    async (path) => {
      const reply = await visitor.get(path);
      const page = await reply.text();
      expect(reply.status).toBe(200);
      const { requests, bytes } = costOf(page);
      // In the first week of a month, spending of the previous month is also read.
      const isOfTwoMonths = path.includes('order=') && new Date(nowMs).getUTCDate() <= 7;
      expect(requests).toBeLessThanOrEqual(isOfTwoMonths ? 18 : 10);
      // Last calls of channels are known for 14 days.
      expect(bytes).toBeLessThanOrEqual((path.startsWith('channels') ? 4 : 2) * 1024 * 1024);
      // Eight days of a month are filled.
      if (path.startsWith('margins'))
        expect((bytes * 31) / Math.min(8, new Date(nowMs).getUTCDate())).toBeLessThanOrEqual(4 * 1024 * 1024);
      expect(page).toContain(`DynamoDB: ${requests} request`);
      const loaded = [...page.matchAll(/(?:href|src)="(static\/[^"]+)"/g)].map(([, at]) => String(at));
      const sizes = await Promise.all(loaded.map(async (at) => (await visitor.page(at)).length));
      const bytesInAll = sizes.reduce((sum, size) => sum + size, Buffer.byteLength(page));
      expect(sizes).toHaveLength(3);
      expect(bytesInAll).toBeLessThanOrEqual(150 * 1024);
      expect(rig.faults).toEqual([]);
    },
  );

  it('compares an invoice of 5,000 lines with a month of 75 models by at most 10 requests, 2 MB and 150 KB', async () => {
    const before = rig.ports.traffic();
    const csv = `${invoiceOf(5000, 300)}\n${'wrong,x\n'.repeat(200)}`;
    const reply = await visitor.send('channels/upstream-0/invoice', { csv, month: invoicedMonth(nowMs) });
    const page = await reply.text();
    const { requests, bytes } = rig.ports.traffic();
    expect(reply.status).toBe(200);
    expect(headsIn(page, 'Models, the largest difference first')).toHaveLength(150);
    expect(page).toContain('5000 models and 200 warnings');
    expect(requests - before.requests).toBeLessThanOrEqual(10);
    expect(bytes - before.bytes).toBeGreaterThan(100 * 1024);
    expect(bytes - before.bytes).toBeLessThanOrEqual(2 * 1024 * 1024);
    expect(Buffer.byteLength(page)).toBeLessThanOrEqual(110 * 1024);
  });

  it('lists the statements of all customers of a month, each once, across its pages', async () => {
    const namesIn = (pages: string[]) =>
      [...pages.join('').matchAll(/statements\?account=(customer-\d+)/g)].map(([, name]) => name);
    const listed = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, at) => accountAt(from + at));
    const start = await visitor.page('statements');
    expect([namesIn([start]), nextIn(start)]).toEqual([
      listed(0, 34),
      expect.stringContaining('after=%2B34'),
    ]);
    // All 59 pages would take 2 s more of processor time.
    const pages = await Array.fromAsync(pagesFrom('statements?after=%2B1800'));
    expect([pages.length, namesIn(pages)]).toEqual([6, listed(1800, 2000)]);
  });

  it.each([1, 24] as const)(
    'a refresh of the overview of %d hours needs at most 10 requests and 2 MB, and each part has its own interval',
    async (hours) => {
      let atMs = nowMs;
      const ports = { ...rig.ports, clock: { ...rig.ports.clock, now: () => atMs } };
      const watch = watchOverview(ports, hours);
      const parts = { now: 0, month: 0, today: 0 };
      // Five minutes after its first look, the month is due again.
      const untilMs = nowMs + 300_000 + 2 * watch.everyMs;
      for (; atMs < untilMs; atMs += watch.everyMs) {
        const before = rig.ports.traffic();
        const look = await watch.look();
        const { requests, bytes } = rig.ports.traffic();
        expect(requests - before.requests).toBeLessThanOrEqual(10);
        expect(bytes - before.bytes).toBeLessThanOrEqual(2 * 1024 * 1024);
        for (const part of ['now', 'month', 'today'] as const) if (look[part]) parts[part] += 1;
        if (look.month) expect(look.month.customers).toHaveLength(10);
      }
      const looks = (untilMs - nowMs) / watch.everyMs;
      expect(parts).toEqual({ now: looks - 2, month: 2, today: hours === 1 ? 5 : 3 });
    },
    30_000,
  );

  it.each([0, 1])('shows customer %d as `customer show` does, with as few requests', async (at) => {
    const account = accountAt(at);
    const page = (await visitor.page(`customers/${account}`)).replaceAll(/\s+/g, ' ');
    const endpoint = { AWS_ENDPOINT_URL_DYNAMODB: rig.emulator.endpoint };
    const { output } = await runOps(`customer show ${account} --json`, endpoint);
    const { use, ...shown } = JSON.parse(output) as {
      [figure in 'available' | 'granted' | 'spent']: string;
    } & {
      use: { calls: number; charged: string; models: { model: string }[]; days: object[] };
      grants: { grantId: string }[];
      all_grants: boolean;
    };
    for (const amount of [shown.available, shown.granted, shown.spent, use.charged])
      expect(page).toContain(`<data value="${amount}"`);
    expect(page).toContain(`${use.calls.toLocaleString('en')} calls, `);
    expect(headsIn(page, 'Usage by model')).toEqual(use.models.slice(0, 150).map(({ model }) => model));
    for (const { grantId } of shown.grants) expect(page).toContain(`<code data-copy="">${grantId}</code>`);
    expect(page.includes('Showing the newest 20')).toBe(!shown.all_grants);

    const before = rig.ports.traffic();
    const view = await viewCustomer(rig.ports, account);
    const after = rig.ports.traffic();
    expect(after.requests - before.requests).toBeLessThanOrEqual(10);
    expect(after.bytes - before.bytes).toBeLessThanOrEqual(2 * 1024 * 1024);
    // Too many models to read 30 days: complete days are shown, and named.
    const dayCount = at === 0 ? 30 : 6;
    expect(view.use).toMatchObject({ isWhole: at === 0, from: dayBack(dayCount - 1), to: dayBack(0) });
    expect(use.days).toHaveLength(dayCount);
    expect(page).toContain(at === 0 ? 'Last 30 days' : `Since ${dayBack(dayCount - 1)}`);
  });

  it('lists all customers and all keys, each once, across the pages of their tables', async () => {
    const seenFrom = async (path: string): Promise<string[]> => {
      const pages = await Array.fromAsync(pagesFrom(path));
      return pages.flatMap((page) =>
        [...page.matchAll(/href="customers\/(customer-\d+)"/g)].map(([, name]) => String(name)),
      );
    };
    expect(await seenFrom('customers?name=customer-019')).toEqual(
      Array.from({ length: 100 }, (_, at) => accountAt(1900 + at)),
    );
    expect(await visitor.page('customers?name=customer-019')).toContain('of 100 customers');
    expect(new Set(await seenFrom('keys')).size).toBe(2000);
  });

  it('lists the requests of a customer page by page, newest first', async () => {
    const one = await visitor.page(`ledger?account=${first}`);
    const two = await visitor.page(nextIn(one) ?? '');
    const ids = [...(one + two).matchAll(/href="requests\/(\w+)\?/g)].map(([, id]) => String(id));
    expect(new Set(ids).size).toBe(100);
    expect(ids.toSorted().toReversed()).toEqual(ids);
  });

  it('audits the balances of all customers page by page', async () => {
    const [wrong] = (await rig.ports.pages.rows({ table: 'accounts', limit: 1 })).rows;
    const account = String(wrong?.['account']);
    await rig.client.send(
      new UpdateItemCommand({
        TableName: physicalNameOf('relay', 'quotas'),
        Key: { account: { S: account } },
        UpdateExpression: 'ADD granted :one',
        ExpressionAttributeValues: { ':one': { N: '1' } },
      }),
    );
    const page = await visitor.page('audit');
    expect(page).toMatch(new RegExp(`${account}</a>[^]*differs by`));
    const after = await visitor.page(nextIn(page) ?? '');
    expect(after).toContain('Checked 300 customers');
    expect(after).not.toContain('differs by');
    expect(costOf(after).requests).toBeLessThanOrEqual(10);
  });

  it('compares an edit with the last days before it is written, and keeps the input', async () => {
    const confirmOf = async (path: string, fields = {}): Promise<string> =>
      visitor.follow(await visitor.send(path, fields));
    const rule = { type: 'token-billing', models: modelAt(16), output: '19' };
    const price = await confirmOf('charges/17', { ...rule, input: '20', cached_input: '1' });
    expect(price).toMatch(/price of vendor-4\/model-16 rises by 300 %/);
    // Only the edited one of 300 models, next to the sum, even if its channel has long been disabled.
    expect(headsIn(price, 'Revenue and margin by model')).toEqual(['All models', modelAt(16)]);
    expect(price).toMatch(/<td[^>]*>(exact|within [\d.]+ %)</);
    const [, again = ''] = /href="(charges\/17\?again=\w+)"/.exec(price) ?? [];
    expect(await visitor.page(again)).toContain(`value="20"`);
    expect(await visitor.page('charges/17')).not.toContain('value="20"');

    const off = await confirmOf('channels/upstream-3/switch');
    expect(off).toMatch(/No longer served:<\/strong>\s*vendor-/);
  }, 60_000);

  it('shows when each channel was last called, as far back as sums are read', async () => {
    const endpoint = 'https://unused.example/v1';
    await put(rig.client, 'channels', [{ id: 'unused', endpoint, models: ['m'], state: true }]);
    const page = await visitor.page('channels');
    const [, since = ''] = /last calls and failures are known\s+since (\d{4}-\d\d-\d\d)/.exec(page) ?? [];
    expect(nowMs - Date.parse(since)).toBeGreaterThan(3 * 86_400_000);
    expect(page).toContain('>today</time>');
    // Ten days are unknown, so it is not reported as idle.
    expect(page).toMatch(new RegExp(`>unused</a>[^]*known since ${since}">no calls<`));
  });
});
