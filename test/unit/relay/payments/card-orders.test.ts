import { expect, test } from 'vitest';
import { changeTopUp, turnOff } from '../../../../shared/billing/auto-top-up.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { SeededRandom } from '../../../simulation/seeded-random.ts';
import { reference, refund, session, StripeRig } from '../../../support/stripe-rig.ts';

const [nonce, laterNonce] = ['0123456789abcdef', 'f'.repeat(16)];
const terms = { below: 500, amount: 1000, monthly: 5000 };
const signed = reference({ currency: 'eur', nonce });
const checkout = [
  'checkout.session.completed',
  session({ currency: 'eur', client_reference_id: signed }),
] as const;
const intent = [
  'payment_intent.succeeded',
  {
    id: 'pi_1',
    amount_received: 1000,
    currency: 'eur',
    customer: 'cus_1',
    payment_method: 'pm_1',
    metadata: { relay_reference: signed },
  },
] as const;
const refunded = ['refund.created', refund({ currency: 'eur' })] as const;
type Event = readonly [type: string, object: Record<string, unknown>];

/**
 * Stripe's events of one payment in any order, repeated and at once, while the rate comes and goes (environments with old settings), the
 * account is deleted and created, stores lose calls and replies, and the customer may ask again or turn top-ups off.
 */
async function pay(seed: number) {
  const random = new SeededRandom(seed);
  const rig = new StripeRig();
  rig.random = () => random.next();
  let isLossy = true;
  const disturb = async (): Promise<void> => {
    for (let turns = random.integer(0, 3); turns > 0; turns -= 1) await Promise.resolve();
    if (isLossy && random.chance(0.15)) throw new StoreUnavailable('lost');
  };
  rig.store.disturb = disturb;
  rig.topUps.disturb = disturb;
  const { kept } = rig.topUps;
  kept.set('acme', { account: 'acme', version: 1, month: '', charged: 0, wanted: { ...terms, nonce } });
  const isRefunded = random.chance(0.2);
  const asksAgain = random.chance(0.2);
  const happenings: (() => unknown)[] = [
    () => (rig.settings!.rates['eur'] = '7'),
    () => delete rig.settings!.rates['eur'],
    () => rig.store.accounts.delete('acme'),
    () => rig.store.accounts.add('acme'),
    ...(asksAgain
      ? [
          () => kept.set('acme', turnOff(kept.get('acme')!)),
          () => kept.set('acme', changeTopUp(kept.get('acme')!, { wanted: { ...terms, nonce: laterNonce } })),
        ]
      : []),
  ];
  const events: Event[] = [checkout, intent];
  /** Retries until the event is accepted, as Stripe does. */
  const deliver = async ([type, object]: Event): Promise<void> => {
    while ((await rig.send(type, { ...object })) !== 200);
  };
  for (let round = 0; round < random.integer(2, 5); round += 1) {
    if (random.chance(0.7)) random.pick(happenings as [() => unknown])();
    const refunds = isRefunded && random.chance(0.5) ? [refunded, refunded] : [];
    const sent = [...events, ...events, ...refunds].filter(() => random.chance(0.6));
    await Promise.all(sent.toSorted(() => random.next() - 0.5).map(deliver));
  }
  // By now each event was accepted at least once.
  await Promise.all(events.map(deliver));
  if (isRefunded) await deliver(refunded);
  isLossy = false;
  rig.settings!.rates['eur'] = '7';
  rig.store.accounts.add('acme');
  await deliver(random.chance(0.5) ? checkout : intent);
  return { rig, isRefunded, asksAgain, auto: kept.get('acme') };
}

test('every order of events credits once, and stores the card if the customer still wants it', async () => {
  let stored = 0;
  for (let seed = 1; seed <= 150; seed += 1) {
    const { rig, isRefunded, asksAgain, auto } = await pay(seed);
    expect([seed, rig.granted]).toEqual([seed, ['acme pi_1 70', ...(isRefunded ? ['acme re_1 -28'] : [])]]);
    if (isRefunded) expect([seed, auto?.card]).toEqual([seed, undefined]);
    if (asksAgain || isRefunded) continue;
    const card = { customer: 'cus_1', method: 'pm_1' };
    expect([seed, auto?.card, auto?.pending?.payment, auto?.version]).toEqual([seed, card, 'pi_1', 2]);
    stored += 1;
  }
  expect(stored).toBeGreaterThan(75);
});
