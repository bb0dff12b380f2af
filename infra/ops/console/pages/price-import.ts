/**
 * Creates rules from a price list that is typed or uploaded: shows example rows, asks once which column has which price, and shows the
 * rules before it writes them, as the command `charge import` does.
 */
import type { PriceMapping } from '../../../../shared/config/setting-rows.ts';
import { joinNames } from '../../../../shared/config/rows/read-table.ts';
import { Failure, formatCount, usageFailure } from '../../../../shared/operate/plan.ts';
import { planImport } from '../../../../shared/operate/prices/import-charges.ts';
import type { PriceSource } from '../../../../shared/operate/prices/price-list.ts';
import {
  findMapping,
  guessColumn,
  guessCurrency,
  mapPriceColumns,
  mappedColumns,
  needsMapping,
  priceCurrencies,
  priceUnits,
} from '../../../../shared/operate/prices/price-mapping.ts';
import { canonicalJson } from '../../../../shared/wire/json.ts';
import { parsePriceList } from '../../csv.ts';
import { makeChoice, makeNames, parseTypedList, type Field } from '../../fields/row-field.ts';
import { html, type Markup } from '../../markup.ts';
import { renderLead } from '../layout/frame.ts';
import { column, renderCut, renderTable } from '../layout/table.ts';
import { buildFormPage, proposeWrites, type Proposal, type Routes, type Visit } from '../visit/visit.ts';
import { renderRules } from './charges.ts';

export const addPriceImport = (routes: Routes): void =>
  routes.form('/charges-import', { page: importPage, propose: proposeImport });

/** First the list alone. Once it is sent, `csv` stays in the form, with the questions that the list raises. */
const importPage = buildFormPage(async ({ ports }, tried) => {
  const list = tried && readList(tried.fields['csv'] ?? '');
  const words = { title: 'Import prices', cancel: 'charges' };
  if (list === undefined || 'problem' in list)
    return {
      ...words,
      intro: renderLead(
        'Choose or paste a vendor’s price list, or LiteLLM’s. No rule is changed; models with a price are skipped.',
      ),
      marks: list ?? {},
      fields: [
        { name: 'csv', label: 'Price list (CSV or JSON)', kind: 'area', required: true },
        { name: 'rows', label: '', kind: 'hidden', value: 'read csv' },
      ],
    };
  const { source } = list;
  const isOwn = needsMapping(source);
  return {
    ...words,
    intro: isOwn ? renderExamples(source) : renderLead('This list is in US dollars per token.'),
    fields: [
      { name: 'csv', label: '', kind: 'hidden', value: '' },
      ...(isOwn ? await listMappingFields(ports, source) : []),
      {
        name: 'rate',
        label: 'Yuan per US dollar',
        width: 'third',
        input: 'decimal',
        placeholder: '7.2',
        help: 'For a list in dollars.',
      },
      { name: 'markup', label: 'Markup (%)', width: 'third', input: 'decimal', value: '0' },
      makeNames('free', 'Free models', 'Models without a price in the list that may be free.'),
      { name: 'only_served', label: 'Only models that a channel serves', kind: 'check' },
    ],
  };
});

const columnsMax = 50;

function readList(csv: string): { source: PriceSource } | { problem: string } {
  try {
    const source = parsePriceList(csv);
    const [head = [], ...rows] = typeof source === 'string' ? [[source], []] : source;
    if (rows.length === 0) return { problem: 'csv: this list has no rows' };
    if (head.length > columnsMax) return { problem: `csv: use at most ${columnsMax} columns` };
    return { source };
  } catch (error) {
    if (error instanceof Failure) return { problem: error.message };
    throw error;
  }
}

const renderExamples = ([names = [], ...rows]: string[][]): Markup =>
  html`${renderLead(`${formatCount(rows.length, 'row')}, such as:`)}
  ${renderTable(rows.slice(0, 3), {
    caption: 'Example rows',
    empty: '',
    isPlain: true,
    columns: names.map((name, at) => column<string[]>(name, (row) => renderCut(row[at] ?? ''))),
  })}`;

async function listMappingFields(ports: Visit['ports'], list: string[][]): Promise<Field[]> {
  const [names = []] = list;
  const known = await findMapping(ports, list, '');
  const choices = Object.fromEntries(names.filter((name) => name !== '').map((name) => [name, name]));
  const none = { model: 'choose a column', input: 'choose a column', output: 'choose a column' } as Record<
    string,
    string
  >;
  return [
    ...mappedColumns.map((name): Field => ({
      ...makeChoice(
        `columns.${name}`,
        `Column of ${name.replaceAll('_', ' ')}`,
        choices,
        none[name] ?? 'none',
      ),
      ...(name === 'model' && { alsoNamed: 'columns' }),
      width: 'third',
      value: known ? (known.columns[name] ?? '') : guessColumn(name, names),
    })),
    { ...makeChoice('per', 'Unit', priceUnits), width: 'third', value: String(known?.per ?? 1_000_000) },
    {
      ...makeChoice('currency', 'Currency', priceCurrencies),
      width: 'third',
      value: known?.currency ?? guessCurrency(list),
    },
    {
      name: 'vendor',
      label: 'Vendor',
      width: 'third',
      required: true,
      value: known?.vendor ?? '',
      help: 'The columns are remembered under this name.',
    },
  ];
}

async function proposeImport(visit: Visit): Promise<Proposal> {
  const { ports, field, options } = visit;
  const list = readList(field('csv'));
  if ('problem' in list) throw usageFailure(list.problem);
  const { source } = list;
  const mapping = needsMapping(source) ? readMapping(visit) : undefined;
  const rate = field('rate');
  if ((mapping?.currency === 'cny') === (rate !== ''))
    throw usageFailure(
      rate === '' ? 'rate: enter yuan per US dollar, such as 7.2' : 'rate: leave empty for a list in yuan',
    );
  const plan = await planImport(ports, {
    list: mapping && needsMapping(source) ? mapPriceColumns(source, mapping) : source,
    rate: rate === '' ? undefined : rate,
    markup: field('markup') || '0',
    onlyServed: field('only_served') === 'yes',
    free: parseTypedList(field('free')),
    mapping,
  });
  const { charges, missing, suspicious } = plan;
  const warnings = [
    ...(missing.length > 0 ? [`Not in the price list: ${joinNames(missing)}`] : []),
    ...(suspicious === undefined
      ? []
      : [`${suspicious} and others cost more than 1 per 1,000 tokens: check the unit`]),
  ];
  const proposal = proposeWrites(
    visit,
    { ...plan, warnings },
    {
      title: 'Import prices',
      back: 'charges',
      verb: 'Import',
      report: () => ({ lines: [`Created ${formatCount(charges.length, 'rule')} (live within 10 s).`] }),
    },
  );
  const details = renderRules(
    { charges, shadowed: [] },
    { ...visit, options: { ...options, readOnly: true } },
  );
  return { ...proposal, details, basis: canonicalJson(plan.changes) };
}

const readMapping = ({ field }: Visit): PriceMapping & { vendor: string } => {
  const vendor = field('vendor');
  if (vendor === '') throw usageFailure('vendor: enter a name');
  const columns = mappedColumns.flatMap((name) => {
    const chosen = field(`columns.${name}`);
    return chosen === '' ? [] : [[name, chosen]];
  });
  const { per, currency } = { per: Number(field('per')), currency: field('currency') };
  if (!(per in priceUnits)) throw usageFailure('per: choose a unit');
  return {
    vendor,
    columns: Object.fromEntries(columns) as Record<string, string>,
    per: per as PriceMapping['per'],
    currency: currency === 'usd' ? 'usd' : 'cny',
  };
};
