/**
 * Creates rules from a pasted or uploaded price list: shows example rows, asks once which column has which price, and shows the
 * rules before it writes them, as the command `charge import` does.
 */
import type { PriceMapping } from '../../../../shared/config/setting-rows.ts';
import { joinNames } from '../../../../shared/config/rows/read-table.ts';
import { Failure, formatCount, usageFailure } from '../../../../shared/operate/plan.ts';
import { planImport } from '../../../../shared/operate/prices/import-charges.ts';
import type { PriceSource } from '../../../../shared/operate/prices/price-list.ts';
import {
  findMapping,
  guessMapping,
  mapPriceColumns,
  needsMapping,
} from '../../../../shared/operate/prices/price-mapping.ts';
import { canonicalJson } from '../../../../shared/wire/json.ts';
import { parsePriceList } from '../../csv.ts';
import { readForm } from '../../fields/form-fields.ts';
import { mappingFields } from '../../fields/price-fields.ts';
import { fillFields, makeNames, makeNumber, parseTypedList, type Field } from '../../fields/row-field.ts';
import { html, type Markup } from '../../markup.ts';
import { renderLead } from '../layout/frame.ts';
import { column, renderCut, renderTable } from '../layout/table.ts';
import { buildFormPage, proposeWrites, type Proposal, type Routes, type Visit } from '../visit/visit.ts';
import { renderRules } from './charges.ts';
import { listTexts } from '../../../../shared/wire/json.ts';

export const addPriceImport = (routes: Routes): void =>
  routes.form('/charges-import', { page: importPage, propose: proposeImport });

/** Asks only for the list first. Then the form keeps the list in the hidden field `csv` and asks about its columns. */
const importPage = buildFormPage(async ({ ports }, tried) => {
  const list = tried && readList(tried.fields['csv'] ?? '');
  const words = { title: 'Import prices', cancel: 'charges' };
  if (list === undefined || 'problem' in list)
    return {
      ...words,
      intro: renderLead(
        'Choose or paste a price list of a vendor or of LiteLLM. Existing rules stay unchanged; models that have a price are skipped.',
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
      makeNumber('rate', 'Yuan per US dollar', 'For a list in dollars.', { placeholder: '7.2' }),
      { name: 'markup', label: 'Markup (%)', width: 'third', input: 'decimal', value: '0' },
      makeNames('free', 'Free models', 'Models to make free if the list has no price for them.'),
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

/** Offers the list's columns as choices. Fills in the saved mapping, or else a guess from the names of the columns. */
async function listMappingFields(ports: Visit['ports'], list: string[][]): Promise<Field[]> {
  const [names = []] = list;
  const known = (await findMapping(ports, list, '')) ?? guessMapping(list);
  const choices = ['', ...names].map((name) => [name, name || 'none'] as const);
  return fillFields(mappingFields, { ...known }).map((field) => {
    const required = /^vendor$|^columns\.(model|input|output)$/.test(field.name);
    const columns = field.name.startsWith('columns.') && { kind: 'choice' as const, choices };
    return Object.assign(field, { required }, columns);
  });
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
  const { charges, missing } = plan;
  const warnings = listTexts(
    ...plan.warnings,
    missing.length > 0 && `Not in the price list: ${joinNames(missing)}`,
  );
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

function readMapping({ fields }: Visit): PriceMapping & { vendor: string } {
  const { vendor, columns = {}, ...how } = readForm(mappingFields, fields);
  if (typeof vendor !== 'string') throw usageFailure('vendor: enter a name');
  return { ...how, columns, vendor } as PriceMapping & { vendor: string };
}
