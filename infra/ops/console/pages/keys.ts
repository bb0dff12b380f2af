/** Finds, checks, edits, rotates, enables and disables keys, and handles leaks. Only the hint and hash of a key are stored. */
import { renderSelectable } from './selection.ts';
import { textOf } from '../../../../shared/config/rows/read-row.ts';
import { maskHash } from '../../../../shared/config/rows/key-row.ts';
import {
  checkKey,
  findKey,
  findKeys,
  judgeKey,
  type FoundKey,
  type KeyView,
} from '../../../../shared/operate/keys/list-keys.ts';
import {
  planDisableKey,
  planEditKey,
  planEnableKey,
  carryOutKey,
  planRotateKey,
  writeRotationMessage,
} from '../../../../shared/operate/keys/edit-key.ts';
import { html, nothing, formatCell, type Content, type Markup } from '../../markup.ts';
import { renderRowTime } from '../layout/figures.ts';
import { existingKeyFields } from '../../fields/key-fields.ts';
import { makeChoice, fillFields, createSeenField, parseTypedRow } from '../../fields/row-field.ts';
import { renderSearch } from '../layout/form.ts';
import { fingerprintRow } from '../../../../shared/operate/rows.ts';
import { renderEmptyState, renderLead, type Page } from '../layout/frame.ts';
import {
  actions,
  renderBadge,
  column,
  renderCut,
  head,
  renderId,
  renderPager,
  renderTable,
  pickFigureColumns,
} from '../layout/table.ts';
import {
  renderCustomerLink,
  buildFormPage,
  createProposal,
  proposeWrites,
  buildPath,
  hideFromReaders,
  type DirectAnswer,
  type FormRoute,
  type Proposal,
  type Routes,
  type Visit,
  customerPathOf,
  type Outcome,
} from '../visit/visit.ts';
import {
  viewKeyUse,
  carryOutLeakedKey,
  planLeakedKey,
  writeLeakMessage,
  planLeakRefund,
  type KeyUse,
  type LeakedKeyMade,
  type LeakedKeyPlan,
  type LeakedRefund,
} from '../../../../shared/operate/keys/leaked-key.ts';
import { momentOf, wantedMoment } from '../../../../shared/operate/moment.ts';
import { formatCount, formatMoney, usageFailure } from '../../../../shared/operate/plan.ts';
import { isoTime, dayMs } from '../../../../shared/wire/iso-time.ts';
import { listTexts } from '../../../../shared/wire/json.ts';

const pageRows = 100;

export function addKeyPages(routes: Routes): void {
  routes.page('/keys', renderKeys);
  routes.form('/keys/check', { page: checkPage, answer: checkTypedKey });
  routes.form('/keys/:hash/edit', { page: editPage, propose: proposeEdit });
  routes.form('/keys/:hash/enable', buildSwitchForm('Enable', planEnableKey));
  routes.form('/keys/:hash/disable', buildSwitchForm('Disable', planDisableKey));
  routes.form('/keys/:hash/rotate', { page: rotatePage, propose: proposeRotate });
  routes.form('/keys/:hash/leaked', { page: leakedPage, propose: proposeLeaked });
}

async function renderKeys(visit: Visit): Promise<Page> {
  const text = visit.query('text');
  const after = visit.query('after');
  const wanted = { text: text || undefined, after: after || undefined, limit: pageRows };
  const { keys, next } = await findKeys(visit.ports, wanted);
  const choose = html`Every key belongs to a customer: <a href="customers">choose one</a>, then create a key.`;
  return {
    title: 'Keys',
    actions: html`<a class="button" href="keys/check">Check a key</a>${hideFromReaders(
        visit,
        html` <a class="button" href="keys-sheet">Add from a sheet</a>
          <a class="button" href="${buildPath('keys-csv', { text })}">Edit as CSV</a>`,
      )}`,
    body: html`${renderSearch({
      action: 'keys',
      verb: 'Search',
      fields: [
        { name: 'text', label: 'Customer, hint or hash', value: text, placeholder: 'acme or sk-AbCd' },
      ],
    })}
    ${renderKeyTable(keys, visit, {
      withAccount: true,
      empty:
        text === ''
          ? renderEmptyState('No keys yet', choose)
          : renderEmptyState('No matching keys', html`<a href="keys">Show all keys</a>`),
    })}
    ${renderPager(
      formatCount(keys.length, 'key') + (next === undefined ? '' : ' of this page, unsorted; there are more'),
      next && buildPath('keys', { text, after: next }),
    )}`,
  };
}

const badges: Record<KeyView['state'], Markup> = {
  usable: renderBadge('active', 'good'),
  unknown: renderBadge('unknown', 'bad'),
  invalid: renderBadge('invalid', 'bad'),
  disabled: renderBadge('disabled'),
  expired: renderBadge('expired'),
  kind: renderBadge('unsupported', 'warning'),
};

export const renderKeyTable = (
  keys: readonly KeyView[],
  visit: Visit,
  { empty, withAccount = false }: { empty: Content; withAccount?: boolean },
): Content =>
  renderSelectable(
    visit,
    { list: 'keys', keyOf: tickedHashOf, nameOf: ({ row }) => textOf(row, 'hint') },
    keys,
    {
      caption: 'Keys',
      empty,
      markOf: ({ state }) => (state === 'invalid' ? 'bad' : undefined),
      columns: [
        head('Key', ({ row }) => (row['hint'] === undefined ? 'no hint' : renderId(formatCell(row['hint'])))),
        column('Name', ({ row }) => renderCut(formatCell(row['name'])), {
          has: ({ row }) => row['name'] !== undefined,
        }),
        column('State', ({ state }) => badges[state]),
        ...(withAccount
          ? [column('Customer', ({ row }: KeyView) => renderCustomerLink(formatCell(row['account'])))]
          : []),
        column('Permissions', ({ why }) => renderCut(why)),
        column('Created', ({ row }) => renderRowTime(row['_created'], visit.nowMs)),
        column('Created by key', ({ row }) => renderHash(formatCell(row['made_by'])), {
          has: ({ row, state }) => row['made_by'] !== undefined && state !== 'invalid',
        }),
        column('Hash', ({ row }) => renderHash(maskHash(formatCell(row['hash'])))),
        ...(visit.options.readOnly ? [] : [actions(renderActions)]),
      ],
    },
  );

const tickedHashOf = ({ row, state }: KeyView): string | undefined =>
  state === 'invalid' ? undefined : textOf(row, 'hash');

const renderHash = (hash: string): Markup => renderId(hash, hash.slice(0, 8));

function renderActions({ row, state }: KeyView): Markup {
  const path = `keys/${encodeURIComponent(formatCell(row['hash']))}`;
  const edit = html`<a href="${path}/edit">Edit</a>`;
  if (state === 'usable')
    return html`${edit} · <a href="${path}/rotate">Rotate</a> · <a href="${path}/disable">Disable</a> ·
      <a href="${path}/leaked">Report leak</a>`;
  if (state === 'disabled') return html`${edit} · <a href="${path}/enable">Enable</a>`;
  // An invalid row may hold a secret anywhere.
  return state === 'expired' ? edit : nothing;
}

const editPage = buildFormPage(async ({ ports, parameter }) => {
  const { hint, row } = await findReadableKey(ports, parameter('hash'));
  return {
    title: `Edit ${hint}`,
    fields: [...fillFields(existingKeyFields, row), createSeenField(fingerprintRow(row))],
    cancel: 'keys',
  };
});

async function findReadableKey(ports: Visit['ports'], written: string): Promise<FoundKey> {
  const key = await findKey(ports, written);
  const { state, why } = judgeKey(key.row, ports.clock.now());
  if (state === 'invalid') throw usageFailure(`${key.name} is not used: ${why}`);
  return key;
}

async function proposeEdit(visit: Visit): Promise<Proposal> {
  const { ports, parameter, field } = visit;
  const { row } = await findReadableKey(ports, parameter('hash'));
  const plan = await planEditKey(
    ports,
    parameter('hash'),
    parseTypedRow(existingKeyFields, field, row),
    field('seen'),
  );
  const message = `Saved ${plan.name} (live within 30 s): ${plan.rights}`;
  const words = { title: 'Edit a key', back: 'keys', verb: 'Save' };
  return proposeWrites(visit, plan, { ...words, report: () => ({ lines: [message] }) });
}

const buildSwitchForm = (
  verb: 'Enable' | 'Disable',
  planOf: typeof planEnableKey | typeof planDisableKey,
): FormRoute => ({
  page: buildFormPage(async ({ ports, parameter }) => {
    const { name, hint } = await findKey(ports, parameter('hash'));
    return {
      title: `${verb} ${hint}`,
      intro: renderLead(`${name}. The key is not deleted.`),
      cancel: 'keys',
    };
  }),
  async propose(visit) {
    const plan = await planOf(visit.ports, visit.parameter('hash'));
    const words = { title: `${verb} a key`, back: 'keys', verb: `${verb} key`, grave: verb === 'Disable' };
    return proposeWrites(visit, plan, { ...words, report: () => ({ lines: plan.effect }) });
  },
});

const rotatePage = buildFormPage(async ({ ports, parameter }) => {
  const { name, hint } = await findKey(ports, parameter('hash'));
  const label = 'Hours until the old key stops working';
  return {
    title: `Rotate ${hint}`,
    intro: html`<p>
      Creates a new key with the same permissions. ${name} keeps working for the time that you set.
    </p>`,
    fields: [{ name: 'grace', label, value: '24', input: 'decimal', help: '0 disables it at once.' }],
    cancel: 'keys',
  };
});

async function proposeRotate({ ports, parameter, field }: Visit): Promise<Proposal> {
  const graceHours = field('grace') === '' ? Number.NaN : Number(field('grace'));
  const plan = await planRotateKey(ports, { written: parameter('hash'), graceHours });
  return createProposal(
    plan,
    { title: 'Rotate a key', back: 'keys', verb: 'Create new key', grave: plan.questions.length > 0 },
    async () => {
      const made = await carryOutKey(ports, plan);
      return {
        lines: [
          `Created the key ${made.hint} for ${plan.account}.`,
          `${plan.oldName} works until ${plan.oldWorksUntil}.`,
        ],
        secret: { name: 'New API key', value: made.secretKey },
        message: writeRotationMessage(plan, made.secretKey),
      };
    },
  );
}

const checkPage = buildFormPage(() => ({
  title: 'Check a key',
  intro: renderLead('Shows whether the relay accepts a key, and why. The key is not stored.'),
  fields: [{ name: 'key', label: 'Full key', required: true, placeholder: 'sk-...' }],
  verb: 'Check key',
  cancel: 'keys',
}));

async function checkTypedKey({ ports, field }: Visit): Promise<DirectAnswer> {
  const { state, why, name } = await checkKey(ports, field('key'));
  const line = `${name ?? 'This key'}: ${state === 'usable' ? 'accepted' : `rejected (${state})`}. ${why}`;
  return { title: 'Check a key', back: 'keys', outcome: { lines: [line] } };
}

const daysMax = 3650;

const leakedPage = buildFormPage(async ({ ports, parameter }) => {
  const { name, hint } = await findKey(ports, parameter('hash'));
  return {
    title: `Report leak of ${hint}`,
    intro: renderLead(
      `${name} stops working within 30 seconds. You get a new key with the same permissions, the calls of the old one, and a message for the customer.`,
    ),
    fields: [
      {
        name: 'since',
        label: 'Show usage since',
        value: '1d',
        help: 'When the key may have leaked: for example 2h, yesterday 14:05 or 2026-11-20.',
      },
      makeChoice('successor', 'New key', {
        yes: 'create one with the same permissions',
        no: 'don’t create one',
      }),
    ],
    cancel: 'keys',
  };
});

async function proposeLeaked({ ports, parameter, field, nowMs }: Visit): Promise<Proposal> {
  const sinceMs = momentOf(field('since'), nowMs, 'past');
  // An invalid time must fail before the key is replaced, or the new key would be lost.
  if (sinceMs === undefined || sinceMs >= nowMs || sinceMs < nowMs - daysMax * dayMs)
    throw usageFailure(`since: enter ${wantedMoment}, before now`);
  const alone = field('successor') === 'no';
  const plan = await planLeakedKey(ports, { written: parameter('hash'), sinceMs, alone });
  const path = customerPathOf(plan.account);
  const { earlier } = plan;
  const verb = earlier ? 'Show usage' : 'Revoke key';
  return createProposal(
    plan,
    { title: `Report leak of ${plan.hint}`, back: path, verb, grave: !earlier },
    async () => {
      const made: LeakedKeyMade = earlier
        ? { successor: undefined, use: await viewKeyUse(ports, plan.use) }
        : await carryOutLeakedKey(ports, plan);
      const refund = planLeakRefund({ plan, use: made.use });
      return {
        ...describeOutcome(plan, made),
        next: [
          [path, `Open ${plan.account}`],
          ...(refund ? [[grantPath(refund), 'Refund what the key spent'] as const] : []),
        ],
      };
    },
  );
}

/** Prefills the grant form; the operator may lower the amount. */
const grantPath = ({ account, ...fields }: LeakedRefund): string =>
  buildPath(`${customerPathOf(account)}/grant`, { ...fields });

function describeOutcome(plan: LeakedKeyPlan, { successor, use, problem }: LeakedKeyMade): Outcome {
  const { name, earlier } = plan;
  const message = writeLeakMessage({ plan, secretKey: successor?.secretKey, use });
  return {
    lines: listTexts(
      earlier
        ? `${name} was disabled before.`
        : `${name} stops working within 30 seconds. Calls that still run, and calls until then, are not listed yet: check again before you refund.`,
      use &&
        `Since ${isoTime(use.sinceMs)} it made ${formatCount(use.sum.counts.calls ?? 0, 'call')} for ${formatMoney(use.sum.amounts.charged ?? 0n)}, of which ${formatMoney(use.refunded)} was refunded.`,
    ),
    warnings: use
      ? use.problems
      : [`Its usage could not be read: ${problem}. Report the leak again to see it.`],
    details: use ? renderUse(use) : nothing,
    ...(successor && { secret: { name: 'New API key', value: successor.secretKey } }),
    message,
  };
}

type Hour = KeyUse['hours'][number];

const renderUse = ({ hours }: KeyUse): Markup =>
  renderTable(hours, {
    caption: 'Usage of the key by hour and model',
    empty: 'No calls in this period.',
    columns: [
      head('Hour', ({ hour }) => hour),
      column('Model', ({ model }) => model),
      ...pickFigureColumns<Hour>(({ figures }) => figures, 'calls', 'failed', 'input', 'output', 'charged'),
    ],
  });
