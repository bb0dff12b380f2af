import type { Mutants } from './mutant.ts';

/** Of what is computed without a store: amounts, prices, rows, what clients speak. */
export const core: Mutants = {
  'money is rounded down': {
    file: 'shared/billing/price.ts',
    find: '(value + divisor / 2n) / divisor',
    replace: 'value / divisor',
    noticed: 'test/unit/billing/amount.test.ts',
    by: /is rounded half up/,
  },
  'a tier begins at its step': {
    file: 'shared/billing/price.ts',
    find: '=> inputTokens > above) ?? tiers[0]',
    replace: '=> inputTokens >= above) ?? tiers[0]',
    noticed: 'test/unit/billing/price.test.ts',
    by: /price a call up to the step/,
  },
  'a part of the input costs nothing where the rule has no price for it': {
    file: 'shared/billing/price.ts',
    find: 'toPico(parts[price] ?? input)',
    replace: 'toPico(parts[price] ?? 0)',
    noticed: 'test/unit/billing/price.test.ts',
    by: /like input where the rule has no price/,
  },
  'an expired call of a plan is charged': {
    file: 'shared/billing/quota-item.ts',
    find: "entry.slot !== '' || entry.official ? 0n",
    replace: 'entry.official ? 0n',
    noticed: 'test/simulation/simulation.test.ts',
    by: /./,
  },
  'a reserve leaves nothing to others': {
    file: 'shared/billing/reservation.ts',
    find: 'larger(least, smaller(free, (free * copies) / 2n))',
    replace: 'larger(least, free)',
    noticed: 'test/unit/billing/reservation.test.ts',
    by: /lowered to half of the balance/,
  },
  'a form of a PDF counts once however often it is drawn': {
    file: 'shared/billing/estimate/pdf-size.ts',
    find: 'named.set(name, (named.get(name) ?? 0) + 1);',
    replace: 'named.set(name, 1);',
    noticed: 'test/unit/billing/estimate/pdf-size.test.ts',
    by: /draws one text many times/,
  },
  'an alias may stand for an alias': {
    file: 'shared/config/setting-rows.ts',
    find: 'alias.models.find((model) => Object.hasOwn(value, model))',
    replace: 'alias.models.find((model) => model === undefined)',
    noticed: 'test/unit/config/settings.test.ts',
    by: /setting aliases/,
  },
  'a price that jumps is not marked where it falls': {
    file: 'shared/config/price-marks.ts',
    find: '(value < 0n ? -value : value);',
    replace: 'value;',
    noticed: 'test/unit/config/price-marks.test.ts',
    by: /falls by 90 %/,
  },
  'outputs keep the order in which a client sends them': {
    file: 'shared/endpoints/responses/input.ts',
    find: "const output = queues.get(id ?? '')?.shift();",
    replace: 'const output = queues.values().next().value?.shift();',
    noticed: 'test/unit/endpoints/responses-input.test.ts',
    by: /outputs take the order of the calls/,
  },
  'a refusal does not name the field inside of a union': {
    file: 'shared/endpoints/parse-request.ts',
    find: 'return furthest && furthest.path.length > path.length ? furthest : { issue, path };',
    replace: 'return { issue, path };',
    noticed: 'test/unit/endpoints/parse-request.test.ts',
    by: /names field, found and wanted/,
  },
  'an item of a response stays open when the next begins': {
    file: 'shared/endpoints/responses/answer-items.ts',
    find: 'while (this.#waiting.length > 1 && this.#waiting[0]?.item.finished())',
    replace: 'while (this.#waiting.length > 2 && this.#waiting[0]?.item.finished())',
    noticed: 'test/golden/responses.test.ts',
    by: /./,
  },
};
