import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { computeCost } from '../../../shared/billing/price.ts';
import { formatYuan, parseYuan } from '../../../shared/billing/money.ts';
import { findImbalance } from '../../../shared/billing/quota-item.ts';
import { tokenPriceOf } from '../../support/prices.ts';
import { afterClose, afterReserve } from '../../support/quota-rules.ts';
import { closeWrite, quota, reserveWrite } from './quota-fixtures.ts';

const calls = 1_000_000;
const batch = 1_000;

/** Small enough for exact plain numbers, which check the reservations by another arithmetic. */
const unitPrice = fc.integer({ min: 0, max: 2_000_000 });

it('a million tiny calls add up to the last unit in the account item, in the ledger and in plain arithmetic', () => {
  fc.assert(
    fc.property(unitPrice, unitPrice, fc.integer(), (input, output, seed) => {
      const price = tokenPriceOf(BigInt(input), BigInt(output));
      let state = seed;
      let [expected, ledger, item] = [0, 0n, quota(10n ** 15n)];
      for (let done = 0; done < calls; done += batch) {
        let charge = 0n;
        for (let call = 0; call < batch; call += 1) {
          state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
          const [prompt_tokens, completion_tokens] = [(state >>> 8) & 7, (state >>> 16) & 7];
          charge += computeCost(price, { prompt_tokens, completion_tokens });
          expected += Math.floor((input * prompt_tokens + output * completion_tokens + 500_000) / 1_000_000);
        }
        const write = reserveWrite(1n, { id: `batch${done}` });
        item = afterClose(afterReserve(item, write), closeWrite(write, charge));
        ledger += parseYuan(formatYuan(charge)) ?? 0n;
      }
      expect([item.spent, ledger, item.granted - item.available]).toEqual(
        [expected, expected, expected].map(BigInt),
      );
      expect(findImbalance(item)).toBeUndefined();
    }),
    { numRuns: 1 },
  );
});
