/**
 * Changes all ticked rows of a list (customers, keys or channels) in the same way: enables, disables, credits or limits them. The list's
 * form leads to the preview and the confirmation that sheets use, too.
 */
import { planLines, type SheetLine } from '../../../../shared/operate/apply-sheet.ts';
import { planSetRows } from '../../../../shared/operate/config/write-rows.ts';
import type { OperatorPorts, RawRow } from '../../../../shared/operate/operator-ports.ts';
import { formatCount, usageFailure } from '../../../../shared/operate/plan.ts';
import { textOf } from '../../../../shared/config/rows/read-row.ts';
import { accountFields } from '../../fields/account-fields.ts';
import { keyRowFields } from '../../fields/key-fields.ts';
import {
  makeChoice,
  makeFlag,
  makeNumber,
  writeTypedRow,
  type Field,
  type RowField,
} from '../../fields/row-field.ts';
import { html, nothing, type Content } from '../../markup.ts';
import { renderFields } from '../layout/form.ts';
import { column, renderTable, type TableInput } from '../layout/table.ts';
import { proposeRowEdit } from '../visit/row-proposal.ts';
import { buildFormPage, createFormId, type Proposal, type Routes, type Visit } from '../visit/visit.ts';
import { proposeLines } from './bulk.ts';

type List = 'customers' | 'keys' | 'channels';

/** Changes of ticked rows: a field with its value, or a field whose value is typed. */
const actions: Record<List, Readonly<Record<string, string>>> = {
  customers: {
    'enabled=no': 'Disable',
    'enabled=yes': 'Enable',
    credit: 'Credit (¥)',
    rpm: 'Calls per minute',
    tpm: 'Tokens per minute',
    concurrency: 'Concurrent calls',
    price_group: 'Price group',
  },
  keys: {
    'enabled=no': 'Disable',
    'enabled=yes': 'Enable',
    rpm: 'Calls per minute',
    max_concurrency: 'Concurrent calls',
    'budget.amount': 'Budget (¥)',
    expires_at: 'Expires',
  },
  channels: { 'state=no': 'Disable', 'state=yes': 'Enable', priority: 'Priority', weight: 'Weight' },
};

const fields: Record<List, readonly RowField[]> = {
  customers: accountFields,
  keys: keyRowFields,
  channels: [makeFlag('state', '', ''), makeNumber('priority', '', ''), makeNumber('weight', '', '')],
};

const lists = Object.keys(actions) as List[];
/** Prefix of a checkbox's name. The rest of the name is the key of its row. */
const tickPrefix = 'row:';

export function addSelectionPages(routes: Routes): void {
  for (const list of lists)
    routes.form(`/${list}-selected`, {
      page: buildFormPage((visit, tried) => ({
        title: `Change ${list}`,
        fields: [
          ...listActionFields(list, visit),
          ...Object.keys(tried?.fields ?? {})
            .filter((name) => name.startsWith(tickPrefix))
            .map((name): Field => ({ name, label: '', kind: 'hidden', value: 'yes' })),
        ],
        cancel: list,
      })),
      propose: (visit) => proposeSelected(visit, list),
    });
}

const listActionFields = (list: List, visit: Pick<Visit, 'nowMs' | 'ports'>): Field[] => [
  makeChoice('action', 'Selected rows', actions[list], 'choose an action'),
  { name: 'value', label: 'Value', ...(list !== 'channels' && { help: 'Leave empty to remove a limit.' }) },
  // Created with the form, so a form sent twice credits once.
  { name: 'id', label: '', kind: 'hidden', value: createFormId(visit) },
];

interface SelectableRows<Row> {
  list: List;
  keyOf: (row: Row) => string | undefined;
  /** For people; by default the key. */
  nameOf?: (row: Row) => string | undefined;
}

/** Wraps a list in a form that changes its ticked rows. Readers get no ticks, and unreadable rows neither: their key may be a secret. */
export function renderSelectable<Row>(
  { options, identity, ...visit }: Visit,
  { list, keyOf, nameOf = keyOf }: SelectableRows<Row>,
  rows: readonly Row[],
  table: TableInput<Row>,
): Content {
  if (options.readOnly || rows.length === 0) return renderTable(rows, table);
  const renderTick = (row: Row): Content => {
    const key = keyOf(row);
    if (key === undefined) return nothing;
    return html`<input
      type="checkbox"
      name="${tickPrefix}${key}"
      value="yes"
      aria-label="Select ${nameOf(row)}"
    />`;
  };
  const columns = [column('Select', renderTick, { isActions: true }), ...table.columns];
  return html`<form method="post" action="${list}-selected">
    <input type="hidden" name="form_token" value="${identity.formToken}" />
    ${renderTable(rows, { ...table, columns })}
    <div class="inline">
      ${renderFields(listActionFields(list, visit))}
      <div class="buttons"><button type="submit">Review changes</button></div>
    </div>
  </form>`;
}

async function proposeSelected(visit: Visit, list: List): Promise<Proposal> {
  const { ports, field } = visit;
  const ticked = Object.keys(visit.fields).flatMap((name) =>
    name.startsWith(tickPrefix) ? [name.slice(tickPrefix.length)] : [],
  );
  const [name = '', fixedValue] = field('action').split('=');
  if (ticked.length === 0) throw usageFailure('select at least one row');
  if (!Object.hasOwn(actions[list], field('action'))) throw usageFailure('action: choose what to do');
  const attributesOf = (row: RawRow): RawRow =>
    writeTypedRow(fields[list], new Map([[name, fixedValue ?? field('value')]]), row);
  if (list === 'channels') {
    const rows = (await ports.tables.scan('channels')).filter((row) => ticked.includes(textOf(row, 'id')));
    const edits = rows.map((row) => ({ key: textOf(row, 'id'), attributes: attributesOf(row) }));
    const plan = await planSetRows(ports, 'channels', edits);
    if (plan.changes.length === 0) throw usageFailure('value: the selected rows already have it');
    const title = `Change ${formatCount(edits.length, 'channel')}`;
    return proposeRowEdit(visit, plan, { title, back: list, grave: fixedValue === 'no' });
  }
  const rows = await readTicked(ports, list, ticked);
  const lines = rows.map((row): SheetLine => {
    const [account, hash] = [textOf(row, 'account'), textOf(row, 'hash')];
    if (list === 'keys') {
      const place = textOf(row, 'hint') || hash.slice(0, 12);
      return { place, account, key: { id: '', hash, attributes: attributesOf(row), isNew: false } };
    }
    if (name === 'credit')
      return { place: account, account, credit: { id: field('id'), amount: field('value') } };
    return { place: account, account, customer: { attributes: attributesOf(row), isNew: false } };
  });
  const plan = await planLines(ports, lines);
  if (plan.changes.length === 0) throw usageFailure('value: the selected rows already have it');
  return proposeLines(visit, plan, list);
}

async function readTicked(ports: OperatorPorts, list: 'customers' | 'keys', ticked: readonly string[]) {
  const rows = await ports.pages.rowsOf(list === 'keys' ? 'keys' : 'accounts', ticked);
  if (rows.length < ticked.length) throw usageFailure('some selected rows no longer exist: reload the list');
  const keyOf = (row: RawRow): string => textOf(row, list === 'keys' ? 'hash' : 'account');
  return rows.toSorted((a, b) => ticked.indexOf(keyOf(a)) - ticked.indexOf(keyOf(b)));
}
