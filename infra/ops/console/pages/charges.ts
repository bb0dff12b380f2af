/** Lists price rules and models without one, and edits them; the impact on the last days is shown before saving. */
import { perMillion } from '../../../../shared/billing/price.ts';
import { joinNames } from '../../../../shared/config/rows/read-table.ts';
import { findLaterRules, refuseChanged, fingerprintRow } from '../../../../shared/operate/rows.ts';
import { planSetRow } from '../../../../shared/operate/config/write-rows.ts';
import { normalizeMoment } from '../../../../shared/operate/moment.ts';
import { formatCount, usageFailure } from '../../../../shared/operate/plan.ts';
import {
  planAnnouncePrice,
  planReprice,
  findRuleOfModel,
} from '../../../../shared/operate/prices/announce-price.ts';
import {
  chooseNextId,
  listCharges,
  findServiceGaps,
  type ChargeList,
  type ChargeGap,
} from '../../../../shared/operate/prices/list-charges.ts';
import type { NewCharge } from '../../../../shared/operate/prices/import-charges.ts';
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';
import { html, nothing, formatCell, type Content, type Markup } from '../../markup.ts';
import { formatTimeUtc, renderAge } from '../layout/figures.ts';
import { fromField, ruleFields, ruleFormFields, typeWords } from '../../fields/price-fields.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import {
  type Field,
  fillFields,
  createSeenField,
  parseText,
  parseTypedNumber,
  parseTypedRow,
} from '../../fields/row-field.ts';
import { fillWholeForm, readWholeForm } from '../../fields/form-fields.ts';
import { readMarks } from '../layout/form.ts';
import { renderEmptyState, renderLead, renderNotice, renderWarnings, type Page } from '../layout/frame.ts';
import {
  renderBadge,
  column,
  renderCut,
  renderDrawerLink,
  head,
  number,
  renderTable,
  type PageColumn,
} from '../layout/table.ts';
import { proposeRowEdit } from '../visit/row-proposal.ts';
import { buildFormPage, hideFromReaders, type Proposal, type Routes, type Visit } from '../visit/visit.ts';

export function addPricePages(routes: Routes): void {
  routes.page('/charges', renderPrices);
  routes.form('/charges-new', { page: newPage, propose: proposeNew });
  routes.form('/charges/model/:model', { page: modelPage, propose: proposeModel });
  routes.form('/charges/:id', { page: editPage, propose: proposeEdit });
}

async function renderPrices(visit: Visit): Promise<Page> {
  const [charges, gaps] = await Promise.all([listCharges(visit.ports), findServiceGaps(visit.ports)]);
  return {
    title: 'Prices',
    actions: hideFromReaders(
      visit,
      html`<a class="button main" href="charges-new">New rule</a>
        <a class="button" href="settings/price_groups">Price groups</a>
        <a class="button" href="charges-import">Import prices</a>
        <a class="button" href="charges-csv">Edit as CSV</a>`,
    ),
    body: html`${renderWarnings(charges.problems)} ${renderGaps(gaps)}
    ${renderLead('Prices are in yuan per 1M tokens, or per call. The tables store them per 1,000 tokens.')}
    ${renderRules(charges, visit)} ${renderGroups(gaps, visit)}`,
  };
}

const renderGaps = ({ free, refused, unused }: ChargeGap): Content => [
  free.length > 0 &&
    renderNotice(
      'warning',
      html`<strong>Free:</strong> ${joinNames(free, linkedMax)} without a price. The relay serves unpriced
        models for free.`,
    ),
  refused.length > 0 &&
    renderNotice(
      'warning',
      html`<strong>Refused:</strong> ${joinNames(refused, linkedMax)} without a price. The relay refuses calls
        to unpriced models.`,
    ),
  unused.length > 0 &&
    html`<p class="soft">Priced, but not served by an enabled channel: ${joinNames(unused, linkedMax)}.</p>`,
];

type ShownRules = Pick<ChargeList, 'shadowed'> & { charges: readonly NewCharge[] };

/** Rules that do not exist yet are shown as to readers, without links. */
export function renderRules({ charges, shadowed }: ShownRules, { nowMs, options }: Visit): Markup {
  const shadowsOf = (id: number) => shadowed.filter((each) => each.id === id);
  return renderTable(charges, {
    caption: 'Billing rules',
    markOf: ({ id }) => (shadowsOf(id).length > 0 ? 'warning' : undefined),
    empty: renderEmptyState(
      'No price rules yet',
      options.readOnly
        ? 'An operator can import a price list or create rules.'
        : html`<a href="charges-import">Import a vendor’s price list</a>, or create a rule.`,
    ),
    columns: [
      head('Rule', ({ id }) => (options.readOnly ? id : renderDrawerLink(`charges/${id}`, id))),
      column('Type', ({ type }) => typeWords[type]),
      column('Models', ({ type, models }) =>
        renderCut(
          models.join(', '),
          options.readOnly || type !== 'token-billing'
            ? joinNames(models, linkedMax)
            : [
                models.slice(0, linkedMax).map(renderModelLink),
                models.length > linkedMax && `and ${models.length - linkedMax} more`,
              ],
        ),
      ),
      rateColumn('Input (¥)', ({ input }) => input),
      rateColumn('Cached (¥)', ({ cached_input: cached }) => cached),
      rateColumn('Output (¥)', ({ output }) => output),
      column('From', ({ from }) => (from === undefined ? 'always' : renderAge(from, nowMs)), {
        sortBy: ({ from }) => from,
      }),
      column(
        'Notes',
        ({ id, tiers = [], service_tiers = {}, windows = [] }) => [
          tiers.length > 0 ? renderBadge(formatCount(tiers.length, 'tier')) : nothing,
          ...Object.entries(service_tiers).map(
            ([tier, factor]) => html` ${renderBadge(`${tier} × ${factor}`)}`,
          ),
          ...[...new Set(windows.map(({ name }) => name))].map((name) => html` ${renderBadge(name)}`),
          ...shadowsOf(id).map(
            ({ by, models }) =>
              html` ${renderBadge(`rule ${by} overrides ${formatCount(models.length, 'model')}`, 'warning')}`,
          ),
        ],
        {
          has: ({ id, tiers, service_tiers, windows }) =>
            (tiers ?? service_tiers ?? windows) !== undefined || shadowsOf(id).length > 0,
        },
      ),
    ],
  });
}

const linkedMax = 12;

const renderGroups = ({ groups }: ChargeGap, { nowMs, options }: Visit): Content =>
  groups.length > 0 &&
  html`<h2 id="groups">Price groups</h2>
    ${renderTable(groups, {
      caption: 'Prices of groups',
      empty: nothing,
      columns: [
        head('Group', ({ group }) =>
          options.readOnly ? group : renderDrawerLink('settings/price_groups', group),
        ),
        column('Models', ({ models }) => joinNames(models, linkedMax)),
        column('Price', ({ factor, type = 'token-billing', input, output }) => {
          if (factor !== undefined) return `standard price × ${factor}`;
          if (type === 'non-billing') return typeWords[type];
          if (type === 'times-billing') return `¥${output ?? 0} per call`;
          return `¥${perMillion(input ?? 0)} input, ¥${perMillion(output ?? 0)} output`;
        }),
        column('From', ({ from }) => (from === undefined ? 'always' : renderAge(from, nowMs))),
        column('Until', ({ until }) => (until === undefined ? '' : renderAge(until, nowMs)), {
          has: ({ until }) => until !== undefined,
        }),
      ],
    })}`;

/** Leads to the form that changes the price of this model alone. */
const renderModelLink = (model: string): Markup =>
  html`${renderDrawerLink(`charges/model/${encodeURIComponent(model)}`, model)} `;

function rateColumn(title: string, of: (rule: NewCharge) => number | undefined): PageColumn<NewCharge> {
  const textOf = (rule: NewCharge): string | undefined => {
    const price = of(rule);
    if (price === undefined || rule.type === 'non-billing') return undefined;
    if (rule.type === 'token-billing') return perMillion(price);
    return title.startsWith('Output') ? String(price) : undefined;
  };
  const unit = html`<span class="unit">per call</span>`;
  return number(
    title,
    (rule) =>
      rule.type === 'times-billing'
        ? html`${textOf(rule) ?? '–'}${textOf(rule) && unit}`
        : (textOf(rule) ?? '–'),
    { textOf },
  );
}

const othersHelp = 'One attribute per line, with its name in the table (docs/tables.md): `name = value`.';

async function rowOf({ ports }: Visit, id: number): Promise<RawRow> {
  const rows = await ports.tables.scan('charges');
  const row = rows.find((each) => each['id'] === id);
  if (!row) throw usageFailure(`rule ${id} does not exist`);
  return row;
}

const editPage = buildFormPage(async (visit, tried) => {
  const id = Number(visit.parameter('id'));
  const row = await rowOf(visit, id);
  return {
    title: `Rule ${id}`,
    marks: readMarks(row),
    fields: [
      ...fillWholeForm(ruleFormFields, row, { help: othersHelp, sent: tried?.fields }),
      createSeenField(fingerprintRow(row)),
    ],
    cancel: 'charges',
  };
});

async function proposeEdit(visit: Visit): Promise<Proposal> {
  const { ports, nowMs, field } = visit;
  const id = Number(visit.parameter('id'));
  const row = await rowOf(visit, id);
  const attributes = readWholeForm(ruleFormFields, visit.fields, row);
  const isLater = (from: unknown): boolean => typeof from === 'string' && Date.parse(from) > nowMs;
  const from = normalizeMoment(field('from'), nowMs);
  const seen = field('seen');
  if (isLater(from) && !isLater(row['from'])) {
    refuseChanged(`rule ${id}`, row, seen);
    const { plan } = await planAnnouncePrice(ports, { id, from, attributes });
    return proposeRowEdit(visit, plan, {
      title: `Rule ${id}, from ${formatTimeUtc(Date.parse(from))}`,
      back: 'charges',
    });
  }
  const plan = await planSetRow(ports, { table: 'charges', key: id, attributes, seen, isNew: false });
  return proposeRowEdit(visit, plan, { title: `Rule ${id}`, back: 'charges' });
}

/** Reprices one model; a rule shared with others is split. */
const priceFields = ruleFields.filter(({ name }) => ['input', 'output', 'cached_input'].includes(name));

const modelPage = buildFormPage(async ({ ports, parameter, nowMs }) => {
  const model = parameter('model');
  const row = findRuleOfModel(await ports.tables.scan('charges'), model, nowMs);
  const id = formatCell(row['id']);
  return {
    title: `Price of ${model}`,
    intro: renderLead(
      html`Set by rule <a href="charges/${id}">${id}</a>. Other models of that rule keep their prices.`,
    ),
    fields: [
      ...fillFields(priceFields, row),
      { ...fromField, help: 'Leave empty to start now. A later time creates a new rule that starts then.' },
      ...listScheduledFields(await listCharges(ports), model, nowMs),
      createSeenField(fingerprintRow(row)),
    ],
    cancel: 'charges',
  };
});

/** Shown only if a price is scheduled, because it would replace the new one. */
function listScheduledFields({ charges }: ChargeList, model: string, nowMs: number): Field[] {
  const later = findLaterRules(charges, [model], nowMs);
  if (later.length === 0) return [];
  const rules = later.map(({ id, from = 0 }) => `rule ${id} from ${isoTime(from)}`).join(', ');
  const help = `Another price is scheduled: ${rules}. Enter keep, delete, or a new start time.`;
  return [{ name: 'announced', label: 'Scheduled price', required: true, value: '', help }];
}

async function proposeModel(visit: Visit): Promise<Proposal> {
  const { ports, parameter, field } = visit;
  const model = parameter('model');
  const attributes = parseTypedRow(priceFields, field);
  const plan = await planReprice(ports, {
    model,
    attributes,
    from: parseText(field('from')),
    announced: parseText(field('announced')),
    seen: field('seen'),
  });
  return proposeRowEdit(visit, plan, { title: `Price of ${model}`, back: 'charges' });
}

const newPage = buildFormPage(async ({ ports }, tried) => ({
  title: 'New rule',
  fields: [
    {
      name: 'id',
      label: 'Number',
      required: true,
      input: 'numeric',
      value: String(chooseNextId(await ports.tables.scan('charges'))),
      help: 'If two rules start at the same time, the lower number wins.',
    },
    ...fillWholeForm(ruleFormFields, { type: 'token-billing' }, { help: othersHelp, sent: tried?.fields }),
  ],
  cancel: 'charges',
}));

async function proposeNew(visit: Visit): Promise<Proposal> {
  const id = parseTypedNumber(visit.field('id'));
  if (typeof id !== 'number') throw usageFailure('id: enter a whole number');
  const attributes = readWholeForm(ruleFormFields, visit.fields, {});
  const plan = await planSetRow(visit.ports, { table: 'charges', key: id, attributes, isNew: true });
  return proposeRowEdit(visit, plan, { title: `New rule ${id}`, back: 'charges' });
}
