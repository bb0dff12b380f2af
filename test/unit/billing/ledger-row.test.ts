import { describe, expect, test } from 'vitest';
import { findCloseRow } from '../../../shared/billing/ledger-row.ts';
import {
  createQuotaItem,
  type CloseRecord,
  type OpenEntry,
  type QuotaItem,
} from '../../../shared/billing/quota-item.ts';
import { afterClose } from '../../support/quota-rules.ts';

const entry: OpenEntry = {
  until: 1_763_701_000,
  amount: 500n,
  input: 20n,
  key: '0123456789ab',
  model: 'gpt-x',
  price: '7:tokens:0.001:0.002',
  slot: '',
  official: false,
  tombstone: false,
};
const closeRecord: CloseRecord = {
  id: 'call',
  kind: 'settled',
  charge: 123n,
  at: 1_763_718_180,
  endpoint: 'chat',
  prompt_tokens: 10,
  completion_tokens: 0,
  estimated: false,
  end: 'completed',
};

function rowOf(
  changes: { entry?: Partial<OpenEntry>; closeRecord?: Partial<CloseRecord>; releaseSlot?: boolean } = {},
) {
  const own = { ...entry, ...changes.entry };
  const before = {
    ...createQuotaItem('acme'),
    open: new Map([
      ['other', entry],
      ['call', own],
    ]),
  };
  const write = {
    account: 'acme',
    id: 'call',
    entry: own,
    releaseSlot: changes.releaseSlot ?? false,
    closeRecord: { ...closeRecord, ...changes.closeRecord },
  };
  return findCloseRow(before, afterClose(before, write));
}

describe('the ledger row of a close', () => {
  test('records what was reserved, used and charged, by which price, key and model, and how the call ended', () => {
    expect(rowOf()).toEqual({
      account: 'acme',
      id: 'call',
      at: '2025-11-21T09:43:00Z',
      kind: 'settled',
      endpoint: 'chat',
      model: 'gpt-x',
      key: '0123456789ab',
      charge: 123n,
      reserved: 500n,
      prompt_tokens: 10,
      completion_tokens: 0,
      end: 'completed',
      price: '7:tokens:0.001:0.002',
    });
  });

  test('records which channel served it as which model, how fast, at what cost and at which price', () => {
    const known = { channel: 'openai', upstream_model: 'gpt-x-2025', first_content_ms: 812, bought: 77n };
    expect(rowOf({ closeRecord: { ...known, flag: 'low', price: '7:tokens:1:2' } })).toMatchObject({
      channel: 'openai',
      upstream_model: 'gpt-x-2025',
      first_content_ms: 812,
      bought: 77n,
      flag: 'low',
      price: '7:tokens:1:2',
    });
    expect(rowOf({ closeRecord: { channel: 'openai' } })).toMatchObject({ upstream_model: 'gpt-x' });
  });

  test('records when token counts are estimates', () => {
    expect(rowOf({ closeRecord: { estimated: true } })).toMatchObject({ estimated: true });
    expect(rowOf()?.estimated).toBeUndefined();
  });

  test('names the plan slot of a call that stays counted, but not of a released call', () => {
    const counted = { slot: 'demo@2026-11-01' };
    expect(rowOf({ entry: counted })).toMatchObject({ plan_slot: 'demo@2026-11-01' });
    expect(rowOf({ entry: counted, closeRecord: { kind: 'expired' } })).toMatchObject({
      plan_slot: 'demo@2026-11-01',
    });
    const released = rowOf({ entry: counted, closeRecord: { kind: 'released' }, releaseSlot: true });
    expect(released?.plan_slot).toBeUndefined();
  });

  test('of an official call records what it would have cost', () => {
    const row = rowOf({ entry: { official: true, amount: 0n }, closeRecord: { charge: 0n, cost: 77n } });
    expect(row).toMatchObject({ official: true, charge: 0n, cost: 77n });
    expect(rowOf()?.official).toBeUndefined();
  });
});

const one: QuotaItem = { ...createQuotaItem('acme'), open: new Map([['call', entry]]), last: closeRecord };
const two = { ...one, last: undefined, open: new Map([...one.open, ['other', entry]]) };

test.each<[string, QuotaItem | undefined, QuotaItem | undefined]>([
  ['a new item', undefined, one],
  ['a removed item', one, undefined],
  ['a reserve', { ...one, open: new Map() }, one],
  ['a grant', one, { ...one, granted: 5n, available: 5n }],
])('a write that closed nothing has no ledger row: %s', (_, before, after) => {
  expect(findCloseRow(before, after)).toBeUndefined();
});

test.each<[string, QuotaItem]>([
  ['two closes at once', { ...two, open: new Map(), last: closeRecord }],
  ['the record of another', { ...two, open: new Map([['call', entry]]), last: closeRecord }],
  ['no record', { ...two, open: new Map([['other', entry]]) }],
])('a change that no write of the relay makes is rejected: %s', (_, after) => {
  expect(() => findCloseRow(two, after)).toThrow('a close without its close record');
});
