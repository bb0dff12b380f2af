import { expect, it } from 'vitest';
import {
  formatPrice,
  computeHighestCost,
  choosePriceToReserve,
  applyServiceTier,
} from '../../shared/billing/price.ts';
import { computeCharge } from '../../shared/billing/usage.ts';
import {
  listPriceTexts,
  buildTariff,
  formatTariff,
  parseTariff,
  findAgreedPrice,
  findServiceTiers,
} from '../../shared/billing/tariff.ts';
import { listPlanSlots } from '../../shared/billing/reservation.ts';
import { listCustomerTerms } from '../../shared/config/customer-prices.ts';
import { AccountRow } from '../../shared/config/rows/account-row.ts';
import { customerPrices } from '../../shared/config/rows/price-terms.ts';
import { ChargeRow } from '../../shared/config/rows/charge-row.ts';
import { PlanRow } from '../../shared/config/rows/plan-row.ts';
import { Endings } from '../oracle/endings.ts';
import { planMonth } from '../oracle/plan-month.ts';
import {
  costOf,
  ruleOfText,
  type ChargeText,
  type CustomerPriceText,
  type WindowText,
} from '../oracle/price-list.ts';
import { resolveTier } from '../../shared/wire/service-tier.ts';
import { SeededRandom } from './seeded-random.ts';
import { tierNames } from './accounts.ts';

const random = new SeededRandom(11);
const rate = (): number => random.integer(0, 10 ** random.integer(1, 9)) / 10 ** random.integer(3, 12);
const maybe = <T>(value: T): T | undefined => (random.chance(0.5) ? value : undefined);
const rates = () => ({
  input: rate(),
  output: rate(),
  ...(random.chance(0.6) && {
    cached_input: rate(),
    cache_write: maybe(rate()),
    cache_write_1h: maybe(rate()),
  }),
});

const factors = (): Record<string, number> =>
  Object.fromEntries(
    ['flex', 'fast', 'priority'].flatMap((name) =>
      random.chance(0.7) ? [[name, random.integer(1, 4_000_000) / 1_000_000]] : [],
    ),
  );

const ownPrices = (): CustomerPriceText[] =>
  Array.from({ length: random.integer(0, 2) }, () => plain(ownPrice()));

const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** None overlap. Some are in a week of 1970, in which calls begin. */
const hours = [
  { from: '00:00', to: '06:00' },
  { from: '06:00', to: '12:30', days: ['thu', 'sat', 'sun'] },
  { from: '22:00', to: '00:00', except: ['1970-01-02'] },
];
const windows = (isByCall: boolean): WindowText[] => {
  const zone = random.pick(['UTC', 'Asia/Shanghai', 'America/New_York', 'Europe/London']);
  return hours.slice(random.integer(0, 2)).map((each) => {
    const prices = isByCall ? { output: rate() } : { ...rates(), service_tiers: factors() };
    return Object.assign({ name: 'peak', zone }, each, random.chance(0.6) ? { factor: factor() } : prices);
  });
};

function row(id: number): ChargeText & Record<string, unknown> {
  const from = maybe(new Date(random.integer(0, 4) * 1000).toISOString());
  const base = { id, models: ['m'], ...(from && { from }) };
  const isByHour = random.chance(0.25);
  if (random.chance(0.2))
    return plain({
      ...base,
      type: 'times-billing' as const,
      output: rate(),
      ...(isByHour && { windows: windows(true) }),
    });
  if (random.chance(0.1)) return { ...base, type: 'non-billing' };
  const tiers = [200, 500].map((above) => Object.assign(rates(), { above }));
  const written = {
    ...base,
    type: 'token-billing' as const,
    ...rates(),
    ...(random.chance(0.5) && { tiers }),
    ...(random.chance(0.5) && { service_tiers: factors() }),
    ...(isByHour && { windows: windows(false) }),
  };
  return plain(written);
}

const factor = (): number => random.integer(1, 4_000_000) / 1_000_000;

/** Prices of a customer: a factor, or prices by tokens or per call that replace the rule's. */
const ownPrice = (): CustomerPriceText & Record<string, unknown> => {
  const dateAt = (ms: number): string => new Date(ms).toISOString();
  const entry = {
    models: random.pick([['m'], ['*'], ['n', 'm*'], ['n*']]),
    from: maybe(dateAt(random.integer(0, 4_000))),
    until: maybe(dateAt(random.integer(4_001, 8_000))),
  };
  if (random.chance(0.6)) return { ...entry, factor: factor() };
  if (random.chance(0.2)) return { ...entry, type: 'times-billing', output: rate() };
  const tiers = [{ above: 300, ...rates() }];
  const more = {
    ...(random.chance(0.3) && { tiers }),
    ...(random.chance(0.5) && { service_tiers: factors() }),
  };
  return { ...entry, ...rates(), ...more };
};

it('the oracle and the relay charge the same, to the last digit', () => {
  for (let turn = 0; turn < 1_000; turn += 1) {
    const list = Array.from({ length: random.integer(1, 3) }, (_, index) => row(index + 1));
    const input = random.pick([0, 1, 199, 200, 201, 500, 501, random.integer(0, 1e6)]);
    const cached = random.integer(0, input);
    const written = random.integer(0, input - cached);
    const writtenForHour = random.integer(0, input - cached - written);
    const output = random.integer(0, 10_000);
    const tokens = { input, output, cached, written, writtenForHour };
    const usage = {
      prompt_tokens: input,
      completion_tokens: output,
      prompt_tokens_details: {
        cached_tokens: cached,
        cache_write_tokens: written,
        cache_write_1h_tokens: writtenForHour,
      },
    };
    const startedMs =
      random.integer(0, 5_000) + (random.chance(0.5) ? random.integer(0, 10_080) * 60_000 : 0);
    const charges = list.map((text) => ChargeRow.parse(text));
    const rulesOf = () => charges;
    const [own, shared] = [ownPrices(), ownPrices()];
    const account = AccountRow.parse({
      account: 'a',
      price_group: 'some',
      ...(own.length > 0 && { prices: own }),
    });
    const settings = shared.length > 0 ? { priceGroups: { some: customerPrices.parse(shared) } } : {};
    const termsOf = (model: string) => listCustomerTerms(settings, account, model, startedMs);
    const tariff = buildTariff({ models: ['m'], rulesOf, termsOf, defaultOutputTokens: 1, nowMs: startedMs });
    const read = parseTariff(formatTariff(tariff), 'm');
    const standard = read ? findAgreedPrice(read, 'm') : ({ type: 'non-billing', rule: null } as const);
    const serviceTiers = findServiceTiers(tariff, 'm');
    const [wanted, reported] = [0, 1].map(() => maybe(random.pick(tierNames)));
    const price = applyServiceTier(
      standard,
      resolveTier(serviceTiers, wanted, reported === 'auto' ? undefined : reported),
    );
    const ended = {
      failed: random.chance(0.3),
      anyContent: random.chance(0.7),
      leftEarly: random.chance(0.2),
    };
    const call = { account: 'a', key: 'k', model: 'm', official: false };
    const asked = { ...call, tier: wanted, prices: [...own, ...shared], startedMs, inputTokens: input };
    const delivered = { ...ended, outputTokens: output, reported: tokens, tier: reported };
    const charge = computeCharge(price, { ...ended, usage });
    expect({ list, own, ...new Endings(list).cost(asked, delivered) }).toEqual({
      list,
      own,
      least: charge,
      most: charge,
    });
    const whole = computeCharge(price, { failed: false, anyContent: true, usage });
    expect(costOf(ruleOfText(formatPrice(price, usage)), tokens)).toBe(whole);
    expect(listPriceTexts(tariff, 'm')).toContain(formatPrice(price, usage));
    expect(computeHighestCost(choosePriceToReserve(standard, wanted), input, output)).toBeGreaterThanOrEqual(
      whole,
    );
  }
});

it('the oracle and the relay compute the same months of plans', () => {
  const plans = [PlanRow.parse({ level: 1, items: [{ id: 'a', value: 5, models: ['m'] }] })];
  for (let turn = 0; turn < 1_000; turn += 1) {
    const sinceMs =
      Date.UTC(2024, random.integer(0, 23), random.integer(1, 31)) + random.integer(0, 86_399) * 1000;
    const nowMs = sinceMs + random.integer(0, 900 * 86_400) * 1000;
    const since = new Date(sinceMs).toISOString();
    const held = { level: 1, since: sinceMs };
    const [slot] = listPlanSlots({ plans, subscription: held, nowMs, model: 'm' });
    expect({ since, nowMs, key: slot?.key }).toEqual({ since, nowMs, key: `a@${planMonth(since, nowMs)}` });
  }
});
