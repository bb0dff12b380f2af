/** Keys: found by customer, hint or hash, checked, rotated, disabled, and what follows from a leak. Nothing of a key but its hint and hash is stored. */
import { shownHash } from '../../../../shared/config/rows/key-row.ts';
import {
  checkKey,
  findKey,
  findKeys,
  keyState,
  type FoundKey,
  type KeyView,
} from '../../../../shared/operate/keys/list-keys.ts';
import {
  planDisableKey,
  planEditKey,
  planEnableKey,
  carryOutKey,
  planRotateKey,
} from '../../../../shared/operate/keys/edit-key.ts';
import { html, nothing, shownValue, type Content, type Markup } from '../../markup.ts';
import { writtenTime } from '../layout/figures.ts';
import { heldKeyFields } from '../../fields/key-fields.ts';
import { choiceField, rowFields, seenField, typedRow } from '../../fields/row-field.ts';
import { search } from '../layout/form.ts';
import { rowMark } from '../../../../shared/operate/rows.ts';
import { emptyState, lead, type Page } from '../layout/frame.ts';
import { actions, badge, column, cut, head, pager, table, figureColumns } from '../layout/table.ts';
import {
  customerLink,
  formPage,
  proposed,
  proposedWrites,
  pathWith,
  unlessReading,
  type Answered,
  type FormRoute,
  type Proposal,
  type Routes,
  type Visit,
  customerPath,
  type Outcome,
} from '../visit/visit.ts';
import { formatYuan } from '../../../../shared/billing/price.ts';
import {
  viewKeyUse,
  carryOutLeakedKey,
  planLeakedKey,
  leakedMessage,
  leakedRefund,
  type KeyUse,
  type LeakedKeyMade,
  type LeakedKeyPlan,
  type LeakedRefund,
} from '../../../../shared/operate/keys/leaked-key.ts';
import { momentOf, wantedMoment } from '../../../../shared/operate/moment.ts';
import { counted, usageFailure } from '../../../../shared/operate/plan.ts';
import { isoTime, dayMs } from '../../../../shared/wire/iso-time.ts';

const pageRows = 100;

export function keyPages(routes: Routes): void {
  routes.page('/keys', list);
  routes.form('/keys/check', { page: checkPage, answer: checked });
  routes.form('/keys/:hash/edit', { page: editPage, propose: proposeEdit });
  routes.form('/keys/:hash/enable', switching('Enable', planEnableKey));
  routes.form('/keys/:hash/disable', switching('Disable', planDisableKey));
  routes.form('/keys/:hash/rotate', { page: rotatePage, propose: proposeRotate });
  routes.form('/keys/:hash/leaked', { page: leakedPage, propose: proposeLeaked });
}

async function list(visit: Visit): Promise<Page> {
  const text = visit.query('text');
  const after = visit.query('after');
  const wanted = { text: text || undefined, after: after || undefined, limit: pageRows };
  const { keys, next } = await findKeys(visit.ports, wanted);
  const choose = html`Keys belong to customers: <a href="customers">choose one</a>, then make a key.`;
  return {
    title: 'Keys',
    actions: html`<a class="button" href="keys/check">Check a key</a>${unlessReading(
        visit,
        html` <a class="button" href="${pathWith('keys-csv', { text })}">CSV</a>`,
      )}`,
    body: html`${search({
      action: 'keys',
      verb: 'Find',
      fields: [
        { name: 'text', label: 'Customer, hint or hash', value: text, placeholder: 'acme or sk-AbCd' },
      ],
    })}
    ${keyTable(keys, visit, {
      withAccount: true,
      empty:
        text === ''
          ? emptyState('No key yet', choose)
          : emptyState('No key fits', html`<a href="keys">Show all keys</a>`),
    })}
    ${pager(
      counted(keys.length, 'key') + (next === undefined ? '' : ', in the order of the table; there are more'),
      next && pathWith('keys', { text, after: next }),
    )}`,
  };
}

const badges: Record<KeyView['state'], Markup> = {
  usable: badge('works', 'good'),
  unknown: badge('unknown', 'bad'),
  invalid: badge('not used', 'bad'),
  disabled: badge('disabled'),
  expired: badge('expired'),
  kind: badge('kind', 'warning'),
};

export const keyTable = (
  keys: readonly KeyView[],
  { options, nowMs }: Visit,
  { empty, withAccount = false }: { empty: Content; withAccount?: boolean },
): Markup =>
  table(keys, {
    caption: 'Keys',
    empty,
    markOf: ({ state }) => (state === 'invalid' ? 'bad' : undefined),
    columns: [
      head('Key', ({ row }) => html`<code>${shownValue(row['hint']) || 'no hint'}</code>`),
      column('Name', ({ row }) => cut(shownValue(row['name'])), {
        has: ({ row }) => row['name'] !== undefined,
      }),
      column('State', ({ state }) => badges[state]),
      ...(withAccount
        ? [column('Customer', ({ row }: KeyView) => customerLink(shownValue(row['account'])))]
        : []),
      column('May', ({ why }) => cut(why)),
      column('Made', ({ row }) => writtenTime(row['_created'], nowMs)),
      column('By key', ({ row }) => hashOf(shownValue(row['made_by'])), {
        has: ({ row, state }) => row['made_by'] !== undefined && state !== 'invalid',
      }),
      column('Hash', ({ row }) => hashOf(shownHash(shownValue(row['hash'])))),
      ...(options.readOnly ? [] : [actions(actionsOf)]),
    ],
  });

const hashOf = (hash: string): Markup => html`<code title="${hash}">${hash.slice(0, 8)}</code>`;

function actionsOf({ row, state }: KeyView): Markup {
  const path = `keys/${encodeURIComponent(shownValue(row['hash']))}`;
  const edit = html`<a href="${path}/edit">Edit</a>`;
  if (state === 'usable')
    return html`${edit} · <a href="${path}/rotate">Rotate</a> · <a href="${path}/disable">Disable</a> ·
      <a href="${path}/leaked">Leaked</a>`;
  if (state === 'disabled') return html`${edit} · <a href="${path}/enable">Enable</a>`;
  // A row that cannot be read may hold a secret anywhere.
  return state === 'expired' ? edit : nothing;
}

const editPage = formPage(async ({ ports, part }) => {
  const { hint, row } = await readableKey(ports, part('hash'));
  return {
    title: `Edit ${hint}`,
    fields: [...rowFields(heldKeyFields, row), seenField(rowMark(row))],
    cancel: 'keys',
  };
});

async function readableKey(ports: Visit['ports'], written: string): Promise<FoundKey> {
  const key = await findKey(ports, written);
  const { state, why } = keyState(key.row, ports.clock.now());
  if (state === 'invalid') throw usageFailure(`${key.name} is not used: ${why}`);
  return key;
}

async function proposeEdit(visit: Visit): Promise<Proposal> {
  const { ports, part, field } = visit;
  const { row } = await readableKey(ports, part('hash'));
  const plan = await planEditKey(ports, part('hash'), typedRow(heldKeyFields, field, row), field('seen'));
  const said = `${plan.name} within 30 seconds: ${plan.rights}`;
  const words = { title: 'Edit a key', back: 'keys', verb: 'Write this' };
  return proposedWrites(visit, plan, { ...words, said: () => ({ lines: [said] }) });
}

/** A key is switched by a button alone: what that does is said, and asked. */
const switching = (
  verb: 'Enable' | 'Disable',
  planOf: typeof planEnableKey | typeof planDisableKey,
): FormRoute => ({
  page: formPage(async ({ ports, part }) => {
    const { name, hint } = await findKey(ports, part('hash'));
    return { title: `${verb} ${hint}`, intro: lead(`${name}. Its row stays.`), cancel: 'keys' };
  }),
  async propose(visit) {
    const plan = await planOf(visit.ports, visit.part('hash'));
    const words = { title: `${verb} a key`, back: 'keys', verb: `${verb} it`, grave: verb === 'Disable' };
    return proposedWrites(visit, plan, { ...words, said: () => ({ lines: plan.effect }) });
  },
});

const rotatePage = formPage(async ({ ports, part }) => {
  const { name, hint } = await findKey(ports, part('hash'));
  const label = 'The old key works for, hours';
  return {
    title: `Rotate ${hint}`,
    intro: html`<p>A new key with the same rights; ${name} works on for a while.</p>`,
    fields: [{ name: 'grace', label, value: '24', input: 'decimal', help: '0 refuses it at once.' }],
    cancel: 'keys',
  };
});

async function proposeRotate({ ports, part, field }: Visit): Promise<Proposal> {
  const graceHours = field('grace') === '' ? Number.NaN : Number(field('grace'));
  const plan = await planRotateKey(ports, { written: part('hash'), graceHours });
  return proposed(
    plan,
    { title: 'Rotate a key', back: 'keys', verb: 'Make the new key', grave: plan.questions.length > 0 },
    async () => {
      const made = await carryOutKey(ports, plan);
      return {
        lines: [
          `${made.hint} is made for ${plan.account}.`,
          `${plan.oldName} works until ${plan.oldWorksUntil}.`,
        ],
        secret: { name: 'The new key', value: made.secretKey },
      };
    },
  );
}

const checkPage = formPage(() => ({
  title: 'Check a key',
  intro: lead('Whether the relay accepts a key, and why. It is hashed, and kept nowhere.'),
  fields: [{ name: 'key', label: 'The whole key', required: true, placeholder: 'sk-...' }],
  verb: 'Check it',
  cancel: 'keys',
}));

async function checked({ ports, field }: Visit): Promise<Answered> {
  const { state, why, name } = await checkKey(ports, field('key'));
  const line = `${name ?? 'This text'}: ${state === 'usable' ? 'the relay accepts it' : `refused (${state})`}. ${why}`;
  return { title: 'Check a key', back: 'keys', outcome: { lines: [line] } };
}

const daysMax = 3650;

const leakedPage = formPage(async ({ ports, part }) => {
  const { name, hint } = await findKey(ports, part('hash'));
  return {
    title: `Leaked: ${hint}`,
    intro: lead(
      `${name} is refused within 30 seconds, a new key with the same rights is made, and its calls are listed with a message for the customer.`,
    ),
    fields: [
      {
        name: 'since',
        label: 'Its use since',
        value: '1d',
        help: 'Such as 2h, yesterday 14:05 or 2026-11-20: since when strangers may have had it.',
      },
      choiceField('successor', 'New key', { yes: 'make one with the same rights', no: 'make none' }),
    ],
    cancel: 'keys',
  };
});

async function proposeLeaked({ ports, part, field, nowMs }: Visit): Promise<Proposal> {
  const sinceMs = momentOf(field('since'), nowMs, 'past');
  // Refused here: after the key is replaced, a time that is none would lose the new one.
  if (sinceMs === undefined || sinceMs >= nowMs || sinceMs < nowMs - daysMax * dayMs)
    throw usageFailure(`since: found ${field('since') || 'nothing'}, wanted ${wantedMoment}, before now`);
  const alone = field('successor') === 'no';
  const plan = await planLeakedKey(ports, { written: part('hash'), sinceMs, alone });
  const path = customerPath(plan.account);
  const { earlier } = plan;
  const verb = earlier ? 'Show its use' : 'Refuse it';
  return proposed(plan, { title: `Leaked: ${plan.hint}`, back: path, verb, grave: !earlier }, async () => {
    const made: LeakedKeyMade = earlier
      ? { successor: undefined, use: await viewKeyUse(ports, plan.use) }
      : await carryOutLeakedKey(ports, plan);
    const refund = leakedRefund({ plan, use: made.use });
    return {
      ...shownOf(plan, made),
      next: [
        [path, `To ${plan.account}`],
        ...(refund ? [[grantPath(refund), 'Refund what it spent'] as const] : []),
      ],
    };
  });
}

/** The form of a grant, with what it is to have. Its amount may be less: the operator chooses. */
const grantPath = ({ account, ...fields }: LeakedRefund): string =>
  pathWith(`${customerPath(account)}/grant`, { ...fields });

function shownOf(plan: LeakedKeyPlan, { successor, use, problem }: LeakedKeyMade): Outcome {
  const { name, earlier } = plan;
  const message = leakedMessage({ plan, secretKey: successor?.secretKey, use });
  return {
    lines: [
      earlier
        ? `${name} was refused before.`
        : `${name} is refused within 30 seconds. Calls that still run, and those until then, are not in its use: look again before you refund.`,
      ...(use
        ? [
            `Since ${isoTime(use.sinceMs)} it made ${counted(use.sum.counts.calls ?? 0, 'call')} for ${formatYuan(use.sum.amounts.charged ?? 0n)} yuan, of which ${formatYuan(use.refunded)} were refunded.`,
          ]
        : []),
    ],
    warnings: use ? use.problems : [`Its use could not be read: ${problem}. Say once more that it leaked.`],
    details: use ? useTable(use) : nothing,
    ...(successor && { secret: { name: 'The new key', value: successor.secretKey } }),
    message,
  };
}

type Hour = KeyUse['hours'][number];

const useTable = ({ hours }: KeyUse): Markup =>
  table(hours, {
    caption: 'What the key was used for, by hour and model',
    empty: 'It called nothing in this time.',
    columns: [
      head('Hour, UTC', ({ hour }) => hour.slice(0, 16).replace('T', ' ')),
      column('Model', ({ model }) => model),
      ...figureColumns<Hour>(({ figures }) => figures, 'calls', 'failed', 'input', 'output', 'charged'),
    ],
  });
