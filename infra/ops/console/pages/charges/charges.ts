/** Prices: the billing rules, and what has none. */
import { perMillion } from '../../../../../shared/billing/price.ts';
import { serviceGaps, type ChargeGap } from '../../../../../shared/operate/prices/price-gaps.ts';
import { listCharges, type ChargeList } from '../../../../../shared/operate/prices/list-charges.ts';
import type { ChargeRow } from '../../../../../shared/config/rows/charge-row.ts';
import { when } from '../../layout/times.ts';
import type { Page } from '../../layout/frame.ts';
import { html, nothing, type Content, type Markup } from '../../layout/markup.ts';
import { command, emptyState, notice, warnings } from '../../layout/notice.ts';
import { badge, table } from '../../layout/table.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';
import { typeWords } from './charge-fields.ts';

export function chargePages(routes: Routes): void {
  routes.page('/charges', list);
}

async function list(visit: Visit): Promise<Page> {
  const [charges, gaps] = await Promise.all([listCharges(visit.ports), serviceGaps(visit.ports)]);
  const { readOnly } = visit.options;
  return {
    title: 'Prices',
    section: 'charges',
    actions: readOnly ? nothing : html`<a class="button main" href="charges-new">New rule</a>`,
    body: html`${warnings(charges.problems)} ${gapNotice(gaps)}
      <p class="lead">
        Prices are yuan for 1,000,000 tokens, or for a call. Rows have them for 1,000 tokens.
      </p>
      ${ruleTable(charges, visit)}`,
  };
}

const gapNotice = ({ free, refused, unused }: ChargeGap): Content => [
  free.length === 0
    ? nothing
    : notice(
        'warning',
        html`<strong>Free:</strong> no rule names ${some(free)}, and unpriced models are free.`,
      ),
  refused.length === 0
    ? nothing
    : notice(
        'warning',
        html`<strong>Refused:</strong> channels serve ${some(refused)}, which no rule prices.`,
      ),
  unused.length === 0
    ? nothing
    : html`<p class="soft">Priced, but no channel that is on serves it: ${some(unused)}.</p>`,
];

const some = (names: readonly string[]): string =>
  names.length > 12 ? `${names.slice(0, 12).join(', ')} and ${names.length - 12} more` : names.join(', ');

const ruleTable = ({ charges, shadowed }: ChargeList, { nowMs, options }: Visit): Markup =>
  table({
    caption: 'Billing rules',
    rows: charges,
    markOf: ({ id }) => (shadowed.some((each) => each.id === id) ? 'warning' : undefined),
    empty: html`${emptyState('No rule yet', 'Import prices of a public list, or make a rule.')}
    ${command('relay-ops charge import --help')}`,
    columns: [
      {
        title: 'Rule',
        isHead: true,
        show: ({ id }) => (options.readOnly ? id : html`<a href="charges/${id}">${id}</a>`),
        sortBy: ({ id }) => id,
      },
      { title: 'Type', show: ({ type }) => typeWords[type] },
      {
        title: 'Models',
        show: ({ models }) =>
          html`<span class="cut" title="${models.join(', ')}">${some(models.slice(0, 12))}</span>`,
      },
      {
        title: 'Input',
        isNumber: true,
        show: (rule) => rateShown(rule, rule.input),
        sortBy: ({ input }) => input,
      },
      { title: 'Cached', isNumber: true, show: (rule) => rateShown(rule, rule.cached_input) },
      {
        title: 'Output',
        isNumber: true,
        show: (rule) =>
          rule.type === 'times-billing'
            ? html`${rule.output}<span class="unit">¥ a call</span>`
            : rateShown(rule, rule.output),
        sortBy: ({ output }) => output,
      },
      {
        title: 'From',
        show: ({ from }) => (from === undefined ? 'always' : when(from, nowMs)),
        sortBy: ({ from }) => from ?? 0,
      },
      {
        title: 'Mark',
        has: ({ id, tiers = [] }) => tiers.length > 0 || shadowed.some((each) => each.id === id),
        show: ({ id, tiers = [] }) => [
          tiers.length > 0 ? badge(`${tiers.length} tiers`) : nothing,
          ...shadowed
            .filter((each) => each.id === id)
            .map(
              ({ by, models }) =>
                html` ${badge(`rule ${by} prices ${models.length} of its models`, 'warning')}`,
            ),
        ],
      },
    ],
  });

function rateShown({ type }: ChargeRow, price: number | undefined): Content {
  if (type !== 'token-billing' || price === undefined) return '–';
  return html`${perMillion(price)}<span class="unit">¥</span>`;
}
