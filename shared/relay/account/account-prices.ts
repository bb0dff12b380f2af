/** Lists current and announced prices for `/v1/account`. Must never show a customer's prices to anyone else. */
import { mapInputParts } from '../../wire/chat-response.ts';
import {
  buildPrice,
  findFactor,
  findRule,
  listPriceChanges,
  multiplyRate,
  perMillion,
  type PicoYuan,
  type Price,
  type Rates,
} from '../../billing/price.ts';
import { findNextChange, findOpenWindow } from '../../billing/schedule.ts';
import { findCallerPrice, listScheduledEntries } from '../../config/customer-prices.ts';
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { formatUntil } from '../catalog/catalog-lists.ts';
import { isoTime } from '../../wire/iso-time.ts';
import type { AccountBody, AccountPrice, AccountPriceChange, AccountRates } from '../../wire/public-api.ts';

interface PricedAccount {
  snapshot: Pick<Snapshot, 'charges' | 'settings'>;
  account: AccountRow | undefined;
  models: readonly string[];
  nowMs: number;
}

/** Lists this customer's current prices and the announced ones. */
export function listAccountPrices(priced: PricedAccount): Pick<AccountBody, 'prices' | 'price_changes'> {
  const changes = listAnnouncedPrices(priced);
  return { prices: listOwnPrices(priced, changes), price_changes: groupModels(changes) };
}

/** Lists prices that are set for this customer or depend on the hour, each with its models. */
function listOwnPrices(
  { snapshot, account, models, nowMs }: PricedAccount,
  changes: readonly AnnouncedPrice[],
): AccountPrice[] {
  const nextOf = new Map(changes.toReversed().map((change) => [change.models[0], change]));
  return groupModels(
    [...Map.groupBy(models, (model) => findRule(snapshot.charges, model, nowMs))].flatMap(([rule, named]) => {
      if (!rule) return [];
      const open = findOpenWindow(rule.windows, nowMs);
      const windowEndMs = findNextChange(rule.windows ?? [], nowMs);
      return named.flatMap((model) => {
        const [{ entry }] = listScheduledEntries(snapshot.settings, account, model, nowMs);
        const terms = entry ? [entry] : [];
        if (terms.length === 0 && !rule.windows) return [];
        const rates = describePrice(buildPrice(rule, terms, open));
        const next = nextOf.get(model);
        const until = formatUntil(windowEndMs, next && [{ fromMs: next.from * 1000 }]);
        return [{ models: [model], ...rates, window: open?.name ?? null, until }];
      });
    }),
  );
}

/** Limits the entries of one model, because a customer may have 100 for each of 300 models. */
const announcedMax = 10;

type AnnouncedPrice = AccountPriceChange & { models: [string] };

/** Lists by time the prices that start when another rule or another entry of the customer's prices applies. */
function listAnnouncedPrices({ snapshot, account, models, nowMs }: PricedAccount): AnnouncedPrice[] {
  const changes = [
    ...listPriceChanges(snapshot.charges, models, nowMs).flatMap(({ fromMs, models: changed }) =>
      changed.map((model) => ({ fromMs, model })),
    ),
    ...models.flatMap((model) => {
      const [, ...ahead] = listScheduledEntries(snapshot.settings, account, model, nowMs);
      return ahead.slice(0, announcedMax).map(({ fromMs }) => ({ fromMs, model }));
    }),
  ];
  return changes
    .toSorted((a, b) => a.fromMs - b.fromMs)
    .flatMap(({ fromMs, model }) => {
      const price = findCallerPrice(snapshot, account, model, fromMs);
      const before = findCallerPrice(snapshot, account, model, fromMs - 1);
      const rates = describePrice(price);
      // A fixed price does not change with the rule. Hourly prices may be equal only at this moment.
      const isFixed = [fromMs - 1, fromMs].every((ms) => !findRule(snapshot.charges, model, ms)?.windows);
      const isSame = isFixed && JSON.stringify(describePrice(before)) === JSON.stringify(rates);
      return price.rule === null || isSame
        ? []
        : [{ from: Math.floor(fromMs / 1000), models: [model], ...rates }];
    });
}

function groupModels<Priced extends { models: string[] }>(prices: readonly Priced[]): Priced[] {
  const groups = Map.groupBy(prices, (price) => JSON.stringify({ ...price, models: [] }));
  return [...groups.values()].flatMap((same) => {
    const [first] = same;
    return first ? [{ ...first, models: [...new Set(same.flatMap(({ models }) => models))] }] : [];
  });
}

/** Copies single fields, so that no private attribute of a row reaches the response. */
function describePrice(price: Price): Omit<AccountRates, 'models'> {
  const free = { input: 0, output: 0, ...mapInputParts('price', () => null), tiers: [], service_tiers: null };
  if (price.type === 'non-billing') return { type: price.type, ...free };
  const factor = findFactor(price);
  const multiply = (rate: PicoYuan): number => multiplyRate(rate, factor);
  if (price.type === 'times-billing') return { type: price.type, ...free, output: multiply(price.perCall) };
  const ratesOf = ({ input, output, ...parts }: Rates) => ({
    input: multiply(input),
    output: multiply(output),
    ...mapInputParts('price', ({ name }) => (parts[name] === input ? null : multiply(parts[name]))),
  });
  const [{ rates }, ...tiers] = price.tiers;
  return {
    type: price.type,
    ...ratesOf(rates),
    tiers: tiers.map((tier) => Object.assign({ above: tier.above }, ratesOf(tier.rates))),
    service_tiers: price.factors ?? null,
  };
}

const describeRates = ({ input, output }: Pick<AccountPrice, 'input' | 'output'>): string =>
  `¥${perMillion(input)} input, ¥${perMillion(output)} output`;

/** Describes a price in one line, for statements and plans. */
export function describeOwnPrice({ type, input, output, ...more }: AccountPrice): string {
  const { cached_input: cached, tiers, service_tiers: factors, until } = more;
  if (type === 'non-billing') return 'free';
  const parts = [
    type === 'times-billing'
      ? `¥${output} per call`
      : `${describeRates({ input, output })} per million tokens`,
    ...(cached === null ? [] : [`¥${perMillion(cached)} cached input`]),
    ...tiers.map((tier) => `over ${tier.above} input tokens ${describeRates(tier)}`),
    ...Object.entries(factors ?? {}).map(([tier, factor]) => `${factor} times that in ${tier}`),
    ...(until === null ? [] : [`until ${isoTime(until * 1000)}`]),
  ];
  return parts.join('; ');
}
