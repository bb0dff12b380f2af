/** Prices: the billing rules, and what has none. */
import { perMillion, perThousand } from '../../../../shared/billing/price.ts';
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';
import {
  withMarks,
  type RowMarks,
  type Field,
  otherAttributes,
  typed,
  typedJson,
  typedList,
  typedNumber,
  marksElsewhere,
  type Tried,
  removed,
} from '../layout/form.ts';
import { html, shownValue, nothing, type Content, type Markup } from '../layout/markup.ts';
import { type Visit, type Routes, ownForm, type Proposal } from '../visit/visit.ts';
import {
  nextId,
  serviceGaps,
  type ChargeGap,
  listCharges,
  type ChargeList,
} from '../../../../shared/operate/prices/list-charges.ts';
import type { ChargeRow } from '../../../../shared/config/rows/charge-row.ts';
import { when } from '../layout/figures.ts';
import { type Page, command, emptyState, notice, warnings } from '../layout/frame.ts';
import { badge, table } from '../layout/table.ts';
import { refuseChanged, rowMark } from '../../../../shared/operate/rows.ts';
import { planSetRow } from '../../../../shared/operate/config/write-rows.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { planAnnouncePrice, planSplitRule } from '../../../../shared/operate/prices/announce-price.ts';
import { rowProposal } from '../visit/row-proposal.ts';

// The fields of a billing rule, with the relay's marks at those that they name; and the rule that was typed.

const types = ['token-billing', 'times-billing', 'non-billing'] as const;
const typeWords = { 'token-billing': 'by token', 'times-billing': 'by call', 'non-billing': 'free' };

/** As they are shown everywhere: for a million tokens. A price by call is one, and what is no number stays as it is. */
const shownPrice = (row: RawRow, name: string): string => {
  const price = row[name];
  const isByToken = row['type'] !== 'times-billing' && typeof price === 'number';
  return isByToken ? perMillion(price) : shownValue(price);
};

/** What is none stays as typed, for the row's schema to refuse. */
function typedPrice(type: string, text: string): number | string | undefined {
  const price = type === 'times-billing' ? undefined : perThousand(text);
  return price !== undefined && price >= 0 && Number.isFinite(price) ? price : typedNumber(text);
}

const own = ['type', 'models', 'input', 'output', 'cached_input', 'from'] as const;

const marksOf = ({ _problem: problem, _warning: warning }: RawRow): RowMarks => ({
  ...(typeof problem === 'string' && { problem }),
  ...(typeof warning === 'string' && { warning }),
});

function fieldsOf(row: RawRow): Field[] {
  const others = otherAttributes(row, own);
  const fields: Field[] = [
    {
      name: 'type',
      label: 'Type',
      kind: 'choice',
      value: shownValue(row['type']),
      choices: types.map((each) => [each, `${each}: ${typeWords[each]}`]),
    },
    {
      name: 'models',
      label: 'Models',
      kind: 'area',
      required: true,
      value: shownValue(row['models']).replaceAll(', ', '\n'),
      help: 'Apart by commas or lines.',
    },
    {
      name: 'input',
      label: 'Input, yuan',
      width: 'third',
      input: 'decimal',
      value: shownPrice(row, 'input'),
      help: 'For a million tokens.',
    },
    {
      name: 'output',
      label: 'Output, yuan',
      width: 'third',
      input: 'decimal',
      value: shownPrice(row, 'output'),
      help: 'For a million tokens, or by call for a call.',
    },
    {
      name: 'cached_input',
      label: 'Cached input, yuan',
      width: 'third',
      input: 'decimal',
      value: shownPrice(row, 'cached_input'),
      help: 'For a million tokens. Empty: as input.',
    },
    {
      name: 'from',
      label: 'From',
      value: shownValue(row['from']),
      placeholder: '2026-12-01T00:00:00Z',
      help: 'Empty: at once. Later: a rule of its own begins then, by itself; this one stays until then.',
    },
    {
      name: 'others',
      label: 'Other attributes',
      kind: 'area',
      value: Object.keys(others).length === 0 ? '' : JSON.stringify(others, null, 2),
      help: html`JSON: <code>tiers</code>, <code>cache_write</code>, <code>max_output_tokens</code> and
        others, as the table has them: prices for 1,000 tokens.`,
    },
  ];
  return withMarks(fields, marksOf(row));
}

function attributesIn({ field }: Visit): RawRow {
  return {
    ...typedJson('others', field('others')),
    type: field('type'),
    models: typedList(field('models')),
    input: typedPrice(field('type'), field('input')),
    output: typedPrice(field('type'), field('output')),
    cached_input: typedPrice(field('type'), field('cached_input')),
    from: typed(field('from')),
  };
}

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

// A billing rule edited, and a new one: checked as the relay does, and compared with the last days before it is written.

export function chargeFormPages(routes: Routes): void {
  routes.form('/charges-new', { page: newPage, propose: proposeNew });
  routes.form('/charges/:id', { page: editPage, propose: proposeEdit });
}

async function rowOf({ ports }: Visit, id: number): Promise<RawRow> {
  const rows = await ports.tables.scan('charges');
  const row = rows.find((each) => each['id'] === id);
  if (!row) throw usageFailure(`there is no rule ${id}`);
  return row;
}

async function editPage(visit: Visit, tried?: Tried): Promise<Page> {
  const id = Number(visit.part('id'));
  const row = await rowOf(visit, id);
  const fields = [...fieldsOf(row), ...onlyField(row)];
  return {
    title: `Rule ${id}`,
    section: 'charges',
    above: [['charges', 'Prices']],
    body: html`${warnings(marksElsewhere(marksOf(row), fields))}
    ${ownForm(visit, {
      fields: [...fields, { name: 'seen', label: '', kind: 'hidden', value: rowMark(row) }],
      verb: 'Check and go on',
      cancel: 'charges',
      tried,
    })}`,
  };
}

/** Of a rule with several models one can be given other prices in the same step. */
function onlyField({ models }: RawRow): Field[] {
  const names = models instanceof Set || Array.isArray(models) ? [...models].map(String) : [];
  if (names.length < 2) return [];
  const choices = [
    ['', 'all models of the rule'] as const,
    ...names.map((name) => [name, `${name} alone`] as const),
  ];
  return [
    {
      name: 'only',
      label: 'For',
      kind: 'choice',
      value: '',
      choices,
      help: 'One alone: it gets a rule of its own with these prices, and the others keep theirs.',
    },
  ];
}

async function proposeEdit(visit: Visit): Promise<Proposal> {
  const { ports, nowMs, field } = visit;
  const id = Number(visit.part('id'));
  const row = await rowOf(visit, id);
  const attributes = { ...removed(otherAttributes(row, [])), ...attributesIn(visit) };
  const isLater = (from: unknown): boolean => typeof from === 'string' && Date.parse(from) > nowMs;
  const [from, only] = [field('from'), field('only')];
  if (isLater(from) && !isLater(row['from'])) {
    refuseChanged(`rule ${id}`, row, field('seen'));
    const own = only === '' ? attributes : { ...attributes, models: [only] };
    const { plan } = await planAnnouncePrice(ports, { id, from, attributes: own });
    return rowProposal(visit, { plan, title: `Rule ${id}, from ${from}`, back: 'charges' });
  }
  if (only !== '') {
    const plan = await planSplitRule(ports, { id, model: only, attributes, seen: field('seen') });
    return rowProposal(visit, { plan, title: `Rule ${id}, ${only} alone`, back: 'charges' });
  }
  const edit = { table: 'charges', key: id, attributes, seen: field('seen'), isNew: false } as const;
  const plan = await planSetRow(ports, edit);
  return rowProposal(visit, { plan, title: `Rule ${id}`, back: 'charges' });
}

const newPage = async (visit: Visit, tried?: Tried): Promise<Page> => ({
  title: 'New rule',
  section: 'charges',
  above: [['charges', 'Prices']],
  body: ownForm(visit, {
    fields: [
      {
        name: 'id',
        label: 'Number',
        required: true,
        input: 'numeric',
        value: String(nextId(await visit.ports.tables.scan('charges'))),
        help: 'Of two rules that begin together, the lower number prices a model.',
      },
      ...fieldsOf({ type: 'token-billing' }),
    ],
    verb: 'Check and go on',
    cancel: 'charges',
    tried,
  }),
});

async function proposeNew(visit: Visit): Promise<Proposal> {
  const id = typedNumber(visit.field('id'));
  if (typeof id !== 'number')
    throw usageFailure(`id: found ${visit.field('id') || 'nothing'}, wanted a whole number`);
  const attributes = Object.fromEntries(
    Object.entries(attributesIn(visit)).filter(([, value]) => value !== undefined),
  );
  const plan = await planSetRow(visit.ports, { table: 'charges', key: id, attributes, isNew: true });
  return rowProposal(visit, { plan, title: `New rule ${id}`, back: 'charges' });
}
