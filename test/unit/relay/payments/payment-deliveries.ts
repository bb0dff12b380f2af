import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { SeededRandom } from '../../../simulation/seeded-random.ts';
import { dispute, reference, refund, session, StripeRig } from '../../../support/stripe-rig.ts';

/** All events of Stripe about one payment, and the expected grants in cents by account and id. */
interface Story {
  events: string[];
  granted: Record<string, number>;
  /** Refunds and disputes whose money came back: granted both ways or not at all, as their events came. */
  returning: string[];
}

export interface Outcome {
  /** `account id yuan`, but for pairs of equal amounts that came back. */
  granted: string[];
  wanted: string[];
  /** Answers after which Stripe sends again, and recorded deliveries that were refused. */
  retried: number;
  stale: number;
  delivered: number;
}

const accounts: readonly [string, ...string[]] = ['acme', 'beta'];

/**
 * Delivers events of payments shuffled, repeated and several at once, while the store loses calls and replies, until each
 * was answered with 200.
 */
export async function deliverPayments(seed: number, deliveries: number): Promise<Outcome> {
  const random = new SeededRandom(seed);
  const rig = new StripeRig();
  rig.random = () => random.next();
  const stories = Array.from({ length: Math.ceil(deliveries / 15) }, (_, at) => storyOf(rig, random, at));
  const all = stories.flatMap(({ events }) => events);
  const repeats = Array.from(
    { length: Math.max(0, deliveries - all.length) },
    () => all[random.integer(0, all.length - 1)] ?? '',
  );
  const waiting = shuffled([...all, ...repeats], random);
  const delivered = waiting.length;
  rig.store.disturb = async () => {
    // Let the other deliveries continue between any two store calls.
    for (let turns = random.integer(0, 3); turns > 0; turns -= 1) await Promise.resolve();
    if (random.chance(0.1)) throw new StoreUnavailable('lost');
  };
  let [retried, stale] = [0, 0];
  const deliver = async (body: string): Promise<void> => {
    if (random.chance(0.1)) {
      const recorded = rig.sign(body, { timestamp: Math.floor(rig.nowMs / 1000) - 3600 });
      stale += Number((await rig.deliver(recorded)).status === 400);
    }
    if ((await rig.deliver(rig.sign(body))).status === 200) return;
    retried += 1;
    waiting.push(body);
  };
  while (waiting.length > 0) await Promise.all(waiting.splice(0, random.integer(1, 8)).map(deliver));
  const returning = new Set(stories.flatMap((story) => story.returning));
  const wanted = stories.flatMap((story) =>
    Object.entries(story.granted).map(([id, cents]) => `${id} ${Number((cents * 0.071).toFixed(3))}`),
  );
  const granted = withoutPairs(rig.granted, returning);
  return { granted, wanted: wanted.toSorted(), retried, stale, delivered };
}

function withoutPairs(granted: string[], returning: ReadonlySet<string>): string[] {
  const isPaired = (line: string): boolean => {
    const [account = '', id = '', yuan = ''] = line.split(' ');
    const [taken, returned] = id.endsWith('-returned')
      ? [id.replace('-returned', ''), id]
      : [id, `${id}-returned`];
    const opposite = yuan.startsWith('-') ? yuan.slice(1) : `-${yuan}`;
    const other = id === taken ? returned : taken;
    return returning.has(taken) && granted.includes(`${account} ${other} ${opposite}`);
  };
  return granted.filter((line) => !isPaired(line));
}

function shuffled(list: string[], random: SeededRandom): string[] {
  return list
    .map((value) => ({ value, at: random.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ value }) => value);
}

function storyOf(rig: StripeRig, random: SeededRandom, at: number): Story {
  const payment_intent = `pi_${at}`;
  const account = random.pick(accounts);
  const cents = random.integer(500, 100_000);
  const client_reference_id = reference({ account, minor: BigInt(cents) });
  const paid = session({ id: `cs_${at}`, payment_intent, amount_total: cents, client_reference_id });
  const charge = { id: `ch_${at}`, payment_intent, amount: cents };
  const isSlow = random.chance(0.3);
  const story: Story = {
    events: [
      rig.event('payment_intent.created', { id: payment_intent }),
      rig.event('payment_intent.succeeded', { id: payment_intent, amount_received: cents }),
      rig.event('charge.succeeded', charge),
      rig.event('charge.updated', charge),
      rig.event('checkout.session.completed', isSlow ? { ...paid, payment_status: 'unpaid' } : paid),
      ...(isSlow ? [rig.event('checkout.session.async_payment_succeeded', paid)] : []),
    ],
    granted: { [`${account} ${payment_intent}`]: cents },
    returning: [],
  };
  for (let part = 0; part < 2 && random.chance(0.4); part += 1)
    addReversal(
      story,
      refundEvents(rig, random, { id: `re_${at}_${part}`, payment_intent, amount: 1 + part }),
      account,
    );
  if (random.chance(0.3))
    addReversal(
      story,
      disputeEvents(rig, random, { id: `dp_${at}`, payment_intent, amount: cents }),
      account,
    );
  return story;
}

interface Reversed {
  id: string;
  payment_intent: string;
  amount: number;
}
type Reversal = Reversed & { events: string[]; returns: boolean };

function addReversal({ events, granted, returning }: Story, reversal: Reversal, account: string): void {
  events.push(...reversal.events);
  if (reversal.returns) returning.push(reversal.id);
  else granted[`${account} ${reversal.id}`] = -reversal.amount;
}

function refundEvents(rig: StripeRig, random: SeededRandom, reversed: Reversed): Reversal {
  const returns = random.chance(0.3);
  const object = refund({ ...reversed, status: returns ? 'pending' : 'succeeded' });
  const events = ['refund.created', 'charge.refund.updated'].map((type) => rig.event(type, object));
  events.push(rig.event('charge.refunded', { id: 'ch_1', amount_refunded: reversed.amount }));
  if (returns) events.push(rig.event('refund.failed', { ...object, status: 'failed' }));
  return { ...reversed, events, returns };
}

function disputeEvents(rig: StripeRig, random: SeededRandom, reversed: Reversed): Reversal {
  const returns = random.chance(0.5);
  const object = dispute({ ...reversed });
  const types = ['charge.dispute.created', 'charge.dispute.funds_withdrawn'];
  const status = returns ? 'won' : 'lost';
  const events = types.map((type) => rig.event(type, object));
  events.push(rig.event('charge.dispute.closed', { ...object, status }));
  return { ...reversed, events, returns };
}
