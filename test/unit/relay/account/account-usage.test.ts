import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mapInputParts } from '../../../../shared/wire/chat-response.ts';
import {
  type CloseRow,
  type GrantLedgerRow,
  type LedgerRow,
  findLedgerTimeMs,
} from '../../../../shared/billing/ledger-row.ts';
import { idAlphabet, timeText } from '../../../../shared/wire/ids.ts';
import { listUsage } from '../../../../shared/relay/account/account-usage.ts';
import type { UsageEntry, UsageList, UsageSum, UsageSums } from '../../../../shared/wire/public-api.ts';
import { AccountRig } from './account-rig.ts';

const dayMs = Date.parse('2026-11-20');
const idAt = (milliseconds: number, tail = '0'): string => timeText(milliseconds) + tail.padStart(16, '0');
const isoAt = (milliseconds: number): string => new Date(milliseconds).toISOString();

interface Page {
  data: { id: string; created: number; [name: string]: unknown }[];
  has_more: boolean;
  next_cursor: string | null;
}

describe('GET /v1/account/usage over the real tables', () => {
  const key = 'sk-acme-key';
  let rig: AccountRig;

  beforeAll(async () => {
    rig = await AccountRig.start();
    await rig.putKey(key, { account: 'acme' });
    await rig.putAttributes('ledger', {
      account: { S: 'acme' },
      id: { S: idAt(dayMs + 1000) },
      at: { S: isoAt(dayMs + 61_000) },
      kind: { S: 'settled' },
      endpoint: { S: 'chat' },
      model: { S: 'm' },
      key: { S: '0123456789ab' },
      charge: { N: '0.003096' },
      reserved: { N: '0.3' },
      prompt_tokens: { N: '12' },
      completion_tokens: { N: '40' },
      cached_tokens: { N: '9' },
      cache_write_1h_tokens: { N: '2' },
      estimated: { BOOL: true },
      flag: { S: 'too_low' },
      service_tier: { S: 'flex' },
      channel: { S: 'not-for-customers' },
      upstream_model: { S: 'not-for-customers' },
      bought: { N: '0.001' },
      first_content_ms: { N: '812' },
      end: { S: 'completed' },
      end_user: { S: 'alice' },
      tags: { M: { team: { S: 'search' }, env: { S: 'prod' } } },
      price: { S: '1:tokens:0.018:0.072' },
    });
    await rig.putAttributes('ledger', {
      account: { S: 'acme' },
      id: { S: 'grant#first & 50%' },
      at: { S: isoAt(dayMs + 500) },
      kind: { S: 'grant' },
      amount: { N: '10' },
      reason: { S: 'paid' },
    });
    await rig.put('ledger', {
      account: 'acme',
      id: idAt(dayMs),
      at: isoAt(dayMs),
      kind: 'settled',
      charge: 0,
      reserved: 0,
      model: 'm',
      key: '0123456789ab',
      price: '1:call:0.5',
      official: true,
      cost: 0.5,
    });
    await rig.put('ledger', {
      account: 'other',
      id: idAt(dayMs, '7'),
      at: isoAt(dayMs),
      kind: 'settled',
      charge: 1,
      reserved: 1,
    });
  });
  afterAll(async () => rig.stop());

  const get = async (query: string): Promise<Page> => {
    const { status, body } = await rig.get(`/v1/account/usage${query}`, key);
    expect(status).toBe(200);
    return body as unknown as Page;
  };

  it('lists the rows of the account, newest first, with every field of a bill', async () => {
    const page = await get('');
    expect(page).toMatchObject({ object: 'list', has_more: false, next_cursor: null });
    expect(page.data.map((row) => row.id)).toEqual([idAt(dayMs + 1000), 'grant#first & 50%', idAt(dayMs)]);
    expect(page.data[0]).toEqual({
      id: idAt(dayMs + 1000),
      object: 'usage',
      created: dayMs / 1000 + 1,
      kind: 'settled',
      endpoint: 'chat',
      model: 'm',
      alias: null,
      key: '0123456789ab',
      charge: 0.003096,
      prompt_tokens: 12,
      completion_tokens: 40,
      ...mapInputParts('count', () => 0),
      cached_tokens: 9,
      cache_write_1h_tokens: 2,
      estimated: true,
      flag: 'too_low',
      service_tier: 'flex',
      first_content_ms: 812,
      end: 'completed',
      end_user: 'alice',
      tags: { team: 'search', env: 'prod' },
      price: '1:tokens:0.018:0.072',
      plan_slot: null,
      official: false,
      cost: null,
      search_price: null,
      amount: null,
      reason: null,
    });
    expect(page.data[1]).toMatchObject({ kind: 'grant', amount: 10, reason: 'paid', charge: 0 });
    expect(page.data[2]).toMatchObject({ official: true, cost: 0.5, charge: 0 });
    for (const row of page.data.slice(1))
      expect(row).toMatchObject({
        ...mapInputParts('count', () => null),
      });
  });

  it.each([
    ['end_user=alice', 1],
    [`end_user=alice&tag=${encodeURIComponent('team=search')}`, 1],
    ['tag=team%3Dsearch&tag=env%3Dprod', 1],
    ['tag=team%3Dsearch,env%3Dtest', 0],
    ['tag=constructor%3Dx', 0],
    ['end_user=bob', 0],
    ['end_user=', 3],
  ])('lists only the rows that match %s', async (query, count) => {
    expect((await get(`?${query}`)).data).toHaveLength(count);
  });

  it('sums calls by end user or by tag, and groups calls without one', async () => {
    const none = { object: 'usage.sum', name: null, requests: 1, charge: 0 };
    const tokens = { prompt_tokens: 12, completion_tokens: 40 };
    for (const [by, name] of [
      ['end_user', 'alice'],
      ['tag:team', 'search'],
    ])
      expect((await get(`?by=${by}`)).data).toMatchObject([
        { object: 'usage.sum', name, requests: 1, charge: 0.003096, ...tokens },
        none,
      ]);
    expect((await get('?by=tag:team&end_user=alice')).data).toHaveLength(1);
  });

  it('continues after the previous page, even after a grant and with an escaped or unescaped cursor', async () => {
    const first = await get('?limit=1');
    expect(first).toMatchObject({ has_more: true, next_cursor: idAt(dayMs + 1000) });
    const second = await get(`?limit=1&cursor=${first.next_cursor}`);
    expect(second.data[0]).toMatchObject({ id: 'grant#first & 50%' });
    for (const cursor of [second.next_cursor ?? '', encodeURIComponent(second.next_cursor ?? '')]) {
      const third = await get(`?limit=1&cursor=${cursor}`);
      expect(third.data.map((row) => row.id)).toEqual([idAt(dayMs)]);
      expect(third).toMatchObject({ has_more: false, next_cursor: null });
    }
  });

  it.each([
    ['tag', '?tag=team'],
    ['by', '?by=model'],
    ['by', '?by=tag:'],
    ['limit', '?limit=0'],
    ['limit', '?limit=101'],
    ['limit', '?limit=ten'],
    ['limit', '?limit='],
    ['cursor', '?cursor=nothing'],
    ['cursor', '?cursor=grant%23unknown'],
    ['cursor', '?cursor=grant%23'],
    // Ids that sort after those of grants.
    ['cursor', `?cursor=${'z'.repeat(26)}`],
    ['cursor', `?cursor=gs${'0'.repeat(24)}`],
    ['cursor', `?cursor=${'z'.repeat(27)}`],
    ['cursor', `?cursor=${idAt(dayMs).toUpperCase()}`],
    ['cursor', `?cursor=${idAt(dayMs).slice(1)}`],
    ['cursor', `?cursor=${idAt(dayMs)}%20`],
    ['cursor', '?cursor=%25E0%25A4'],
    ['cursor', '?cursor=%00'],
    ['cursor', '?cursor=%F0%9F%92%A9'],
  ])('names the invalid parameter %s of %s', async (param, query) => {
    const { status, body } = await rig.get(`/v1/account/usage${query}`, key);
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ param, type: 'invalid_request_error', code: 'invalid_value' });
  });
});

describe('pages', () => {
  it('together list every row once, newest first, for any times and page size', async () => {
    const time = fc.integer({ min: 0, max: 6 }).map((step) => dayMs + step);
    const tail = fc.string({ unit: fc.constantFrom(...idAlphabet.split('')), minLength: 16, maxLength: 16 });
    const request = fc.tuple(time, tail).map(([at, end]) => row(timeText(at) + end, at + 90_000, 'settled'));
    const grant = fc
      .tuple(time, fc.string({ maxLength: 3 }))
      .map(([at, id]) => row(`grant#${id}`, at, 'grant'));
    const rows = fc.uniqueArray(fc.oneof(request, grant), { selector: (each) => each.id, maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(rows, fc.integer({ min: 1, max: 7 }), async (ledger, limit) => {
        const reader = readerOf(ledger);
        const seen: string[] = [];
        let cursor: string | null = '';
        while (cursor !== null) {
          const query = new URLSearchParams({ limit: String(limit), cursor });
          const page = (await listUsage(reader, 'acme', query)) as UsageList;
          expect(page.data.length).toBeLessThanOrEqual(limit);
          seen.push(...page.data.map((each) => each.id));
          cursor = page.next_cursor;
        }
        const times = seen.map((id) =>
          findLedgerTimeMs(ledger.find((each) => each.id === id) ?? row(id, 0, 'grant')),
        );
        expect(times).toEqual(times.toSorted((a, b) => b - a));
        expect(seen.toSorted()).toEqual(ledger.map((each) => each.id).toSorted());
      }),
    );
  });
});

describe('pages of filtered rows', () => {
  it('read a bounded number of rows at a time, and their sums match the sums of all rows', async () => {
    const team = (at: number): string => (at % 7 === 0 ? 'search' : 'ads');
    const ledger = Array.from({ length: 1201 }, (_, at) => ({
      ...row(idAt(dayMs + at), dayMs, 'settled'),
      charge: BigInt(at) * 1_000_000n,
      tags: { team: team(at) },
    }));
    const reader = readerOf(ledger);
    const reads: number[] = [];
    const counted: typeof reader = {
      ...reader,
      requests: (account, before, limit) => (reads.push(limit), reader.requests(account, before, limit)),
    };
    const pages = async (query: object): Promise<(UsageList | UsageSums)[]> => {
      const all: (UsageList | UsageSums)[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const page = await listUsage(counted, 'acme', new URLSearchParams({ ...query, cursor }));
        all.push(page);
        cursor = page.next_cursor;
      }
      return all;
    };
    const listed = (await pages({ tag: 'team=search', limit: '100' })).flatMap(
      ({ data }) => data as UsageEntry[],
    );
    expect(listed.map(({ id }) => id)).toEqual(
      ledger
        .filter(({ tags }) => tags.team === 'search')
        .map(({ id }) => id)
        .toReversed(),
    );
    expect((await pages({ tag: 'team=none' })).map(({ data }) => data.length)).toEqual([0, 0, 0]);
    const sums = (await pages({ by: 'tag:team' })).flatMap(({ data }) => data as UsageSum[]);
    const charged = sums.filter(({ name }) => name === 'ads').reduce((sum, { charge }) => sum + charge, 0);
    const wanted = ledger.reduce((sum, { charge }, at) => sum + (team(at) === 'ads' ? charge : 0n), 0n);
    expect(charged).toBeCloseTo(Number(wanted) / 1e9, 9);
    expect(Math.max(...reads)).toBe(501);
  });
});

function row(id: string, at: number, kind: 'settled' | 'grant'): LedgerRow {
  const start = { account: 'acme', id, at: isoAt(at) };
  if (kind === 'grant') return { ...start, kind, amount: 0n, reason: '' };
  return { ...start, kind, model: 'm', key: 'k', charge: 0n, reserved: 0n, price: '-:free' };
}

/** A table in the order of ids, as DynamoDB keeps it. */
function readerOf(ledger: LedgerRow[]): Parameters<typeof listUsage>[0] {
  const sorted = ledger.toSorted((a, b) => (a.id < b.id ? 1 : -1));
  const requests = sorted.filter((each): each is CloseRow => each.kind !== 'grant');
  return {
    requests: async (_account, before, limit) => requests.filter(({ id }) => id < before).slice(0, limit),
    late: async () => requests.filter(({ id }) => id.startsWith('late#')),
    grants: async () => sorted.filter((each): each is GrantLedgerRow => each.kind === 'grant'),
  };
}
