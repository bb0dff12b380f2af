import { expect, it } from 'vitest';
import { deliverPayments } from '../unit/relay/payments/payment-deliveries.ts';

const first = Number(process.env['SIMULATION_SEED'] ?? 1_000);

it('grants each payment, refund and dispute exactly once over 10,000 deliveries', async () => {
  let delivered = 0;
  for (let seed = first; delivered < 10_000; seed += 1) {
    const outcome = await deliverPayments(seed, 250);
    expect(outcome.granted, `seed ${seed}`).toEqual(outcome.wanted);
    delivered += outcome.delivered;
  }
});
