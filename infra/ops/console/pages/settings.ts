/** Lists settings, notices and plans. Each row has a form; clearing all fields deletes the row. */
import { settingTable } from '../../../../shared/config/setting-rows.ts';
import {
  listRows,
  planRemoveRow,
  planSetRow,
  type ShownRow,
} from '../../../../shared/operate/config/write-rows.ts';
import { formatWrittenMoney, usageFailure } from '../../../../shared/operate/plan.ts';
import { fillForm, readForm } from '../../fields/form-fields.ts';
import { listValues } from '../../fields/describe-changes.ts';
import { createSeenField, topOf, type RowField } from '../../fields/row-field.ts';
import { listSettingFields, planFields, settingForms } from '../../fields/setting-fields.ts';
import { html, formatCell, type Content } from '../../markup.ts';
import { renderWriter, renderRowTime } from '../layout/figures.ts';
import { renderLead, renderNotice, renderWarnings, type Page } from '../layout/frame.ts';
import { renderBadge, column, renderCut, head, number, renderTable } from '../layout/table.ts';
import { proposeRowEdit } from '../visit/row-proposal.ts';
import { buildFormPage, hideFromReaders, type FormRoute, type Routes, type Visit } from '../visit/visit.ts';

export function addSettingPages(routes: Routes): void {
  routes.page('/settings', renderSettings);
  routes.form('/settings/plans/:key', buildRowForm('plans'));
  routes.form('/settings/:key', buildRowForm('settings'));
}

const levels = [1, 2, 3];

async function renderSettings(visit: Visit): Promise<Page> {
  const { ports, nowMs, options } = visit;
  const [settings, plans] = [await listRows(ports, 'settings'), await listRows(ports, 'plans')];
  const warnings = [...settings, ...plans].flatMap(({ key, problem, warning }) => {
    const words = problem === undefined ? warning : `is invalid: ${problem}`;
    return words === undefined ? [] : [`${key} ${words}`];
  });
  const link = (path: string, key: string | number): Content =>
    options.readOnly ? key : html`<a href="${path}/${key}">${key}</a>`;
  return {
    title: 'Settings',
    actions: hideFromReaders(visit, html`<a class="button main" href="settings/notices">Notices</a>`),
    body: html`${renderWarnings(warnings)}
      ${renderTable(addKnown(settings, [...Object.keys(settingForms), ...Object.keys(settingTable)]), {
        caption: 'Settings',
        empty: '',
        columns: [
          head('Setting', ({ key }) => link('settings', key)),
          column('Description', ({ key }) => settingForms[key]?.about ?? ''),
          column('Value', ({ shown }) => renderValue(shown)),
          column('Changed', ({ shown }) => renderRowTime(shown?.at, nowMs), {
            has: ({ shown }) => shown?.at !== undefined,
          }),
          column('By', ({ shown }) => (shown?.by === undefined ? '' : renderWriter(shown.by)), {
            has: ({ shown }) => shown?.by !== undefined,
          }),
        ],
      })}
      <h2>Plans</h2>
      ${renderTable(addKnown(plans, levels), {
        caption: 'Plans',
        empty: '',
        columns: [
          head('Level', ({ key }) => link('settings/plans', key)),
          number('Price', ({ shown }) =>
            shown?.row ? formatWrittenMoney(formatCell(shown.row['price'])) : '–',
          ),
          column('Covers', ({ shown }) => renderCover(shown)),
        ],
      })}`,
  };
}

/** Lists known keys first, then unknown ones that the table holds. */
const addKnown = (rows: readonly ShownRow[], known: readonly (string | number)[]) =>
  [...new Set([...known, ...rows.map(({ key }) => key)])].map((key) => ({
    key,
    shown: rows.find((each) => each.key === key),
  }));

function renderValue(shown: ShownRow | undefined): Content {
  if (shown === undefined) return html`<span class="soft">default</span>`;
  return renderRow(listSettingFields(String(shown.key)), shown);
}

function renderCover(shown: ShownRow | undefined): Content {
  if (shown === undefined) return html`<span class="soft">not set: calls are paid from the balance</span>`;
  return renderRow(
    planFields.filter(({ name }) => name !== 'price'),
    shown,
  );
}

function renderRow(fields: readonly RowField[], { row }: ShownRow): Content {
  if (row === undefined) return renderBadge('invalid', 'bad');
  const members = Object.fromEntries(fields.map(({ name }) => [topOf(name), row[topOf(name)]]));
  const values = listValues(fields, members).filter(({ text }) => text !== '');
  return renderCut(
    values.map(({ label, text }) => (fields.length > 1 ? `${label}: ${text}` : text)).join(', '),
  );
}

/** The differences between the two tables. */
const kinds = {
  settings: {
    keyOf: (written: string) => written,
    isKnown: (key: string | number) => Object.hasOwn(settingTable, key),
    named: (key: string | number) => `Setting ${key}`,
    about: (key: string | number) => settingForms[key]?.about ?? '',
    fields: (key: string | number) => listSettingFields(String(key)),
  },
  plans: {
    keyOf: Number,
    isKnown: (key: string | number) => levels.includes(Number(key)),
    named: (key: string | number) => `Plan ${key}`,
    about: () =>
      'The plan pays for calls of the customers on it, while the setting subscription.enabled is on. Clear its price and entries to delete it; calls are then paid from balances.',
    fields: () => planFields,
  },
};

const pageOf = (key: string | number): string => (key === 'price_groups' ? 'charges' : 'settings');

/** Values of an invalid row are hidden: one may be a misplaced secret. */
async function rowOf({ ports, parameter }: Visit, of: keyof typeof kinds) {
  const kind = kinds[of];
  const key = kind.keyOf(parameter('key'));
  if (!kind.isKnown(key)) throw usageFailure(`${kind.named(parameter('key')).toLowerCase()} does not exist`);
  const found = (await listRows(ports, of)).find((each) => each.key === key);
  const row = found?.row ?? {};
  return { kind, key, found, row, fields: kind.fields(key) };
}

const buildRowForm = (of: keyof typeof kinds): FormRoute => ({
  page: buildFormPage(async (visit, tried) => {
    const { kind, key, found, row, fields } = await rowOf(visit, of);
    const { mark, problem, warning } = found ?? {};
    return {
      title: kind.named(key),
      intro: [
        renderLead(kind.about(key)),
        problem !== undefined &&
          renderNotice('bad', 'This row is invalid, so its values are hidden. Saving replaces them.'),
      ],
      marks: { problem, warning },
      fields: [
        ...fillForm(fields, row, tried?.fields),
        ...(mark === undefined ? [] : [createSeenField(mark)]),
      ],
      cancel: pageOf(key),
    };
  }),
  async propose(visit) {
    const { ports, field } = visit;
    const { key, kind, found, row, fields } = await rowOf(visit, of);
    const attributes = readForm(fields, visit.fields, row);
    const isEmpty = Object.values(attributes).every((value) => value === undefined);
    if (isEmpty && !found) throw usageFailure('nothing to save: enter a value');
    const edit = { table: of, key };
    const plan = isEmpty
      ? await planRemoveRow(ports, edit, field('seen'))
      : await planSetRow(ports, { ...edit, attributes, seen: found && field('seen'), isNew: !found });
    const grave = isEmpty && of === 'plans';
    return proposeRowEdit(visit, plan, { title: kind.named(key), back: pageOf(key), grave });
  },
});
