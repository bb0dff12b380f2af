/** Requests: one by its id as a story, and the newest of a customer. */
import { search, actionButton, type Tried, typed } from '../layout/form.ts';
import { type Page, emptyState, warnings, notice } from '../layout/frame.ts';
import { html, nothing, type Markup } from '../layout/markup.ts';
import { pager, badge, stepList, table } from '../layout/table.ts';
import { type Routes, type Visit, ownForm, type Proposal, ofPlan } from '../visit/visit.ts';
import { ledgerTimeMs, type CloseRow, type LedgerRow } from '../../../../shared/billing/ledger-row.ts';
import { askedId, bookedRequest, requestSteps } from '../../../../shared/operate/requests/find-request.ts';
import { when, grouped, milliseconds, yuan } from '../layout/figures.ts';
import { explainRequest, storySteps } from '../../../../shared/operate/requests/explain-request.ts';
import { nextStep } from '../../../../shared/operate/requests/next-step.ts';
import { planRefundCharge } from '../../../../shared/operate/customers/refund-charge.ts';
import { carryOutGrant } from '../../../../shared/operate/customers/grants.ts';
import { grantLines } from './grants.ts';

const pageRows = 50;

export function requestPages(routes: Routes): void {
  routes.page('/requests', list);
  routes.page('/requests/:id', oneRequest);
}

async function list(visit: Visit): Promise<Page> {
  const { ports, query } = visit;
  const id = query('id');
  if (id !== '') return oneRequest({ ...visit, part: () => id });
  const account = query('account');
  const before = query('before');
  const found =
    account === '' ? undefined : await ports.pages.requests(account, before || undefined, pageRows);
  const at = new URLSearchParams({ account, ...(found?.next !== undefined && { before: found.next }) });
  const address = `requests?account=${encodeURIComponent(account)}`;
  return {
    title: 'Requests',
    section: 'requests',
    body: html`<div class="columns">
        ${search({
          action: 'requests',
          verb: 'Explain it',
          fields: [
            {
              name: 'id',
              label: 'Id of a request or an answer',
              placeholder: 'chatcmpl-01jd3k… or x-request-id',
            },
          ],
        })}
        ${search({
          action: 'requests',
          verb: 'Show',
          fields: [{ name: 'account', label: 'Newest of a customer', value: account }],
        })}
      </div>
      ${
        found === undefined
          ? html`<div class="empty">
              ${emptyState(
                'Why did it fail, why did it cost that much?',
                'Customers have the id in the header x-request-id and in each answer. Without one, look at the newest requests of the customer.',
              )}
            </div>`
          : html`${warnings(found.rows.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])))}
            ${requestTable(
              found.rows.flatMap((each) => ('row' in each ? [each.row] : [])),
              visit,
            )}
            ${pager({
              count: `${found.rows.length} requests, newest first`,
              ...(before !== '' && { first: address }),
              ...(found.next !== undefined && { next: `requests?${at.toString()}` }),
            })}`
      }`,
  };
}

// One request, step by step, with the amounts that led to its charge.

async function oneRequest(visit: Visit): Promise<Page> {
  const written = visit.part('id');
  const above = [['requests', 'Requests']] as const;
  const isPart = !written.startsWith('grant#') && !askedId(written).isWhole;
  const found = isPart ? undefined : await bookedRequest(visit.ports, written);
  if (!found)
    return {
      title: written,
      section: 'requests',
      above,
      body: html`${notice('warning', isPart ? partOfId : notInLedger)}
        <p>The log has a line of each call that was refused:</p>
        ${actionButton(`requests/${encodeURIComponent(written)}/log`, visit.identity.formToken, 'What the log says')}`,
      status: 404,
    };
  const { row, late, problem } = found;
  const isRefundable =
    row.kind !== 'grant' && row.charge + (late?.charge ?? 0n) > 0n && !visit.options.readOnly;
  return {
    title: row.id,
    section: 'requests',
    above: [...above, [`requests?account=${encodeURIComponent(row.account)}`, row.account]],
    actions: html`${actionButton(`requests/${encodeURIComponent(row.id)}/log`, visit.identity.formToken, 'What the log says')}${isRefundable ? html`<a class="button" href="requests/${encodeURIComponent(row.id)}/refund">Refund</a>` : nothing}`,
    body: html`${problem === undefined ? nothing : notice('bad', `The charge does not follow from the row: ${problem}`)}
      <p>
        ${row.kind === 'grant' ? badge('grant') : endBadge(row)} of
        <a href="customers/${encodeURIComponent(row.account)}">${row.account}</a>,
        ${when(ledgerTimeMs(row), visit.nowMs)}
      </p>
      ${stepList(requestSteps(row, late))}`,
  };
}

const notInLedger =
  'The ledger has no row of this id. The call was refused before it cost anything, is still under way, or ended within the last seconds.';
const partOfId = 'This is the beginning of an id, which the ledger does not find.';

// Requests of a customer as a table.

const requestTable = (rows: readonly LedgerRow[], { nowMs }: Visit): Markup =>
  table({
    caption: 'Requests',
    rows: rows.filter((row): row is CloseRow => row.kind !== 'grant'),
    markOf: ({ kind, end }) => (kind !== 'settled' || end === 'failed' ? 'warning' : undefined),
    empty: emptyState('No request', 'This customer has no request in the ledger: is the name right?'),
    columns: [
      {
        title: 'Request',
        isHead: true,
        show: ({ id }) => html`<a href="requests/${encodeURIComponent(id)}"><code>${id}</code></a>`,
      },
      { title: 'Began', show: (row) => when(ledgerTimeMs(row), nowMs), sortBy: (row) => ledgerTimeMs(row) },
      {
        title: 'Model',
        show: ({ model, alias }) =>
          alias === undefined ? model : html`${model} <span class="soft">by ${alias}</span>`,
      },
      { title: 'Channel', show: ({ channel }) => channel ?? '–' },
      { title: 'End', show: (row) => endBadge(row) },
      {
        title: 'Input',
        isNumber: true,
        show: ({ prompt_tokens }) => grouped(prompt_tokens ?? 0),
        sortBy: ({ prompt_tokens }) => prompt_tokens ?? 0,
      },
      {
        title: 'Output',
        isNumber: true,
        show: ({ completion_tokens }) => grouped(completion_tokens ?? 0),
        sortBy: ({ completion_tokens }) => completion_tokens ?? 0,
      },
      {
        title: 'First content',
        isNumber: true,
        show: ({ first_content_ms: first }) => (first === undefined ? '–' : milliseconds(first)),
        sortBy: ({ first_content_ms }) => first_content_ms ?? 0,
      },
      { title: 'Charged', isNumber: true, show: ({ charge }) => yuan(charge) },
    ],
  });

function endBadge({ kind, end }: CloseRow): Markup {
  const isGood = kind === 'settled' && end !== 'failed';
  return badge(
    kind === 'settled' ? (end ?? 'settled') : kind,
    isGood ? (end === 'client_gone' ? 'calm' : 'good') : 'warning',
  );
}

// What the log says of a request: candidates, refusals, times. A search that may take seconds, so it runs as work.

export function logPages(routes: Routes): void {
  routes.form('/requests/:id/log', { page: logPage, propose: proposeLog, reads: true });
}

const logPage = async (visit: Visit, tried?: Tried): Promise<Page> => ({
  title: `What the log says of ${visit.part('id')}`,
  section: 'requests',
  above: [['requests', 'Requests']],
  body: ownForm(visit, {
    fields: [],
    verb: 'Search it',
    tried,
  }),
});

async function proposeLog({ ports, part }: Visit): Promise<Proposal> {
  const id = part('id');
  return {
    title: `What the log says of ${id}`,
    back: `requests/${encodeURIComponent(id)}`,
    effect: [],
    questions: [],
    verb: 'Search it',
    reads: true,
    async carryOut(onProgress) {
      onProgress('the log is searched within 15 minutes of the time in the id');
      const { logged, note, found } = await explainRequest(ports, id);
      const next = logged && nextStep(logged);
      const steps = logged ? storySteps(logged) : [];
      return {
        lines: [
          logged ? 'The log has lines of this request.' : (note ?? 'The log has no line of it.'),
          ...(found ? [] : ['Nothing was charged: there is no ledger row.']),
          ...(next === undefined ? [] : [`Next: ${next}`]),
        ],
        details: steps.length === 0 ? nothing : stepList(steps),
      };
    },
  };
}

// The refund of a request, whole or in part.

const refundWaitMs = 10_000;

export function refundPages(routes: Routes): void {
  routes.form('/requests/:id/refund', { page: refundPage, propose: proposeRefund });
}

const refundPage = async (visit: Visit, tried?: Tried): Promise<Page> => {
  const id = visit.part('id');
  const path = `requests/${encodeURIComponent(id)}`;
  return {
    title: `Refund ${id}`,
    section: 'requests',
    above: [
      ['requests', 'Requests'],
      [path, id],
    ],
    body: ownForm(visit, {
      fields: [
        { name: 'amount', label: 'Amount, yuan', input: 'decimal', help: 'Empty: all that is left.' },
        { name: 'reason', label: 'Reason', help: 'The customer sees it in their usage.' },
      ],
      verb: 'Go on',
      cancel: path,
      tried,
    }),
  };
};

async function proposeRefund({ ports, part, field }: Visit): Promise<Proposal> {
  const id = part('id');
  const [amount, reason] = [typed(field('amount')), typed(field('reason'))];
  const plan = await planRefundCharge(ports, { id, amount, reason });
  return {
    ...ofPlan(plan, { title: `Refund ${id}`, back: `requests/${encodeURIComponent(id)}`, verb: 'Refund it' }),
    async carryOut() {
      const made = await carryOutGrant(ports, plan, refundWaitMs);
      return {
        lines: grantLines(plan, made),
        next: [[`customers/${encodeURIComponent(plan.account)}`, `To ${plan.account}`]],
      };
    },
  };
}
