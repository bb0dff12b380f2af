/** Keys: found by customer, hint or hash. */
import { shownHash } from '../../../../shared/config/rows/key-row.ts';
import { findKeys, type KeyView, checkKey, findKey } from '../../../../shared/operate/keys/list-keys.ts';
import { counted, writtenTime } from '../layout/figures.ts';
import { search, type Tried } from '../layout/form.ts';
import { type Page, emptyState } from '../layout/frame.ts';
import { html, nothing, shownValue, type Content, type Markup } from '../layout/markup.ts';
import { pager, badge, table } from '../layout/table.ts';
import { type Routes, type Visit, ownForm, ofPlan, type Proposal } from '../visit/visit.ts';
import {
  carryOutRotateKey,
  planRotateKey,
  planDisableKey,
} from '../../../../shared/operate/keys/edit-key.ts';
import { carryOutWrites } from '../../../../shared/operate/rows.ts';

const pageRows = 100;

export function keyPages(routes: Routes): void {
  routes.page('/keys', list);
}

async function list(visit: Visit): Promise<Page> {
  const text = visit.query('text');
  const after = visit.query('after');
  const wanted = { text: text || undefined, after: after || undefined, limit: pageRows };
  const { keys, next } = await findKeys(visit.ports, wanted);
  const at = new URLSearchParams({
    ...(text !== '' && { text }),
    ...(next !== undefined && { after: next }),
  });
  return {
    title: 'Keys',
    section: 'keys',
    actions: html`<a class="button" href="keys/check">Check a key</a>`,
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
          ? emptyState(
              'No key yet',
              html`Keys belong to customers: <a href="customers">choose one</a>, then make a key.`,
            )
          : emptyState('No key fits', html`<a href="keys">Show all keys</a>`),
    })}
    ${pager({
      count:
        counted(keys.length, 'key') +
        (next === undefined ? '' : ', in the order of the table; there are more'),
      ...(after !== '' && { first: 'keys' }),
      ...(next !== undefined && { next: `keys?${at.toString()}` }),
    })}`,
  };
}

// Keys as a table: by their hints, since nothing else of them is stored.

const marks: Record<KeyView['state'], 'good' | 'bad' | 'warning' | 'calm'> = {
  usable: 'good',
  unknown: 'bad',
  invalid: 'bad',
  disabled: 'calm',
  expired: 'calm',
  kind: 'warning',
};
const words: Partial<Record<KeyView['state'], string>> = { usable: 'works', invalid: 'not used' };

export function keyTable(
  keys: readonly KeyView[],
  { options, nowMs }: Visit,
  { empty, withAccount = false }: { empty: Content; withAccount?: boolean },
): Markup {
  return table({
    caption: 'Keys',
    rows: keys,
    empty,
    markOf: ({ state }) => (state === 'invalid' ? 'bad' : undefined),
    columns: [
      {
        title: 'Key',
        isHead: true,
        show: ({ row }) => html`<code>${shownValue(row['hint']) || 'no hint'}</code>`,
      },
      { title: 'State', show: ({ state }) => badge(words[state] ?? state, marks[state]) },
      ...(withAccount
        ? [
            {
              title: 'Customer',
              show: ({ row }: KeyView) =>
                html`<a href="customers/${encodeURIComponent(shownValue(row['account']))}"
                  >${shownValue(row['account'])}</a
                >`,
            },
          ]
        : []),
      { title: 'May', show: ({ why }) => html`<span class="cut" title="${why}">${why}</span>` },
      {
        title: 'Made',
        show: ({ row }) => writtenTime(row['_created'], nowMs),
      },
      {
        title: 'Hash',
        show: ({ row }) =>
          html`<code title="${shownHash(shownValue(row['hash']))}"
            >${shownHash(shownValue(row['hash'])).slice(0, 8)}</code
          >`,
      },
      ...(options.readOnly
        ? []
        : [
            {
              title: 'Actions',
              isActions: true,
              show: ({ row, state }: KeyView) => {
                const path = `keys/${encodeURIComponent(shownValue(row['hash']))}`;
                return state === 'usable'
                  ? html`<a href="${path}/rotate">Rotate</a> · <a href="${path}/disable">Disable</a> ·
                      <a href="${path}/leaked">Leaked</a>`
                  : nothing;
              },
            },
          ]),
    ],
  });
}

// What is done to a key: checked, rotated, disabled.

export function keyFormPages(routes: Routes): void {
  routes.form('/keys/check', { page: checkPage, propose: proposeCheck, reads: true });
  routes.form('/keys/:hash/disable', { page: disablePage, propose: proposeDisable });
  routes.form('/keys/:hash/rotate', { page: rotatePage, propose: proposeRotate });
}

const disablePage = async (visit: Visit, tried?: Tried): Promise<Page> => {
  const { name, hint } = await findKey(visit.ports, visit.part('hash'));
  return {
    title: `Disable ${hint}`,
    section: 'keys',
    above: [['keys', 'Keys']],
    body: html`<p>${name}: calls with it are refused within 30 seconds. Its row stays.</p>
      ${ownForm(visit, {
        fields: [],
        verb: 'Go on',
        cancel: 'keys',
        tried,
      })}`,
  };
};

async function proposeDisable({ ports, part }: Visit): Promise<Proposal> {
  const plan = await planDisableKey(ports, part('hash'));
  return {
    ...ofPlan(plan, { title: 'Disable a key', back: 'keys', verb: 'Disable it', grave: true }),
    async carryOut() {
      await carryOutWrites(ports, plan);
      return { lines: [`${plan.name} is refused within 30 seconds.`] };
    },
  };
}

const rotatePage = async (visit: Visit, tried?: Tried): Promise<Page> => {
  const { name, hint } = await findKey(visit.ports, visit.part('hash'));
  return {
    title: `Rotate ${hint}`,
    section: 'keys',
    above: [['keys', 'Keys']],
    body: html`<p>A new key with the same rights; ${name} works on for a while.</p>
      ${ownForm(visit, {
        fields: [
          {
            name: 'grace',
            label: 'The old key works for, hours',
            value: '24',
            input: 'decimal',
            help: '0 refuses it at once.',
          },
        ],
        verb: 'Go on',
        cancel: 'keys',
        tried,
      })}`,
  };
};

async function proposeRotate({ ports, part, field }: Visit): Promise<Proposal> {
  const graceHours = field('grace') === '' ? Number.NaN : Number(field('grace'));
  const plan = await planRotateKey(ports, { written: part('hash'), graceHours });
  return {
    ...ofPlan(plan, { title: 'Rotate a key', back: 'keys', verb: 'Make the new key' }),
    grave: plan.questions.length > 0,
    async carryOut() {
      const made = await carryOutRotateKey(ports, plan);
      return {
        lines: [
          `${made.hint} is made for ${plan.account}.`,
          `${plan.oldName} works until ${plan.oldWorksUntil}.`,
        ],
        secret: { name: 'The new key', value: made.secretKey },
      };
    },
  };
}

const checkPage = async (visit: Visit, tried?: Tried): Promise<Page> => ({
  title: 'Check a key',
  section: 'keys',
  above: [['keys', 'Keys']],
  body: html`<p class="lead">Whether the relay accepts a key, and why. It is hashed, and kept nowhere.</p>
    ${ownForm(visit, {
      fields: [{ name: 'key', label: 'The whole key', required: true, placeholder: 'sk-...' }],
      verb: 'Check it',
      cancel: 'keys',
      // What was typed is a secret, so it is not shown again.
      tried: tried && { ...tried, fields: {} },
    })}`,
});

async function proposeCheck({ ports, field }: Visit): Promise<Proposal> {
  const { state, why, name } = await checkKey(ports, field('key'));
  const line = `${name ?? 'This text'}: ${state === 'usable' ? 'the relay accepts it' : `refused (${state})`}. ${why}`;
  return {
    title: 'Check a key',
    back: 'keys',
    effect: [],
    questions: [],
    verb: 'Check it',
    reads: true,
    carryOut: async () => ({ lines: [line] }),
  };
}
