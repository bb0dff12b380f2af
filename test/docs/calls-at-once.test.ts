/** Checks docs/billing.md: how many equal parallel calls a balance admits, as the code decides. */
import { expect, it } from 'vitest';
import { createQuotaItem } from '../../shared/billing/quota-item.ts';
import {
  isRefusal,
  planReservation,
  type CallEstimate,
  type ReserveNeed,
} from '../../shared/billing/reservation.ts';
import { tokenPriceOf } from '../support/prices.ts';
import { readPage } from './pages.ts';

const page = readPage('docs/billing.md');
const yuan = 1_000_000_000n;
const balances = [10, 100];
/** Nano-yuan per 1,000 tokens: input, output. */
const prices: [string, bigint, bigint][] = [
  ['0.001 / 0.004', 1_000_000n, 4_000_000n],
  ['0.018 / 0.072', 18_000_000n, 72_000_000n],
  ['0.036 / 0.18', 36_000_000n, 180_000_000n],
];
/** The upper estimate of 2,000 tokens of prose is about 4,000. */
const unlimited: CallEstimate = {
  inputTokens: 2_000,
  inputTokensMax: 4_000,
  n: 1,
  outputTokensMax: 16_384,
  outputTokensLeast: 1_024,
  reservesFully: false,
};
const limited: CallEstimate = { ...unlimited, outputTokensMax: 1_000, reservesFully: true };

/** Number of calls admitted in sequence while none ends, and how many of them with their full output limit. */
function admitted(balance: number, [, input, output]: (typeof prices)[number], estimate: CallEstimate) {
  const price = tokenPriceOf(input * 1_000n, output * 1_000n);
  const need: ReserveNeed = {
    id: 'call',
    price,
    slots: [],
    estimate,
    key: 'key',
    nowMs: 0,
    reservesNothing: false,
  };
  let available = BigInt(balance) * yuan;
  for (let calls = 0, whole = 0; ; calls += 1) {
    const planned = planReservation(need, { ...createQuotaItem('account'), available });
    if (isRefusal(planned)) return { calls, whole };
    available -= planned.amount;
    if (planned.limitedTo === undefined) whole += 1;
  }
}

it('the table of parallel calls matches the code', () => {
  const rows = prices.flatMap((price) =>
    balances.map((balance) => {
      const { calls, whole } = admitted(balance, price, unlimited);
      return [price[0], balance, whole, calls, admitted(balance, price, limited).calls].map(String);
    }),
  );
  const section = page.split('## How many calls at once')[1]?.split('\n## ')[0] ?? '';
  const shown = [...section.matchAll(/^\|( *\d.*)\|$/gm)].map(([, cells = '']) =>
    cells.split('|').map((text) => text.trim().replaceAll(',', '')),
  );
  expect(shown).toEqual(rows);
});
