/** Requests: one by its id as a story, the newest of a customer, what the log says of one, and its refund. */
import { ledgerTimeMs, type CloseRow, type LedgerRow } from '../../../../shared/billing/ledger-row.ts';
import { carryOutGrant } from '../../../../shared/operate/customers/grants.ts';
import { planRefundCharge } from '../../../../shared/operate/customers/refund-charge.ts';
import { askedId, bookedRequest, requestSteps } from '../../../../shared/operate/requests/find-request.ts';
import { explainRequest, storySteps } from '../../../../shared/operate/requests/explain-request.ts';
import { nextStep } from '../../../../shared/operate/requests/next-step.ts';
import { html, nothing, type Markup } from '../../markup.ts';
import { grantSaid } from '../../outcomes.ts';
import { grouped, milliseconds, when, yuan } from '../layout/figures.ts';
import { actionButton, search, typed } from '../layout/form.ts';
import { emptyBox, emptyState, notice, warnings, type Page } from '../layout/frame.ts';
import { badge, column, head, number, pager, stepList, table } from '../layout/table.ts';
import {
  appliedWaitMs,
  customerLink,
  customerPath,
  formPage,
  proposed,
  reading,
  pathWith,
  type Proposal,
  type Routes,
  type Visit,
} from '../visit/visit.ts';

const pageRows = 50;

export function requestPages(routes: Routes): void {
  routes.page('/requests', list);
  routes.page('/requests/:id', oneRequest);
  routes.form('/requests/:id/refund', { page: refundPage, propose: proposeRefund });
  routes.form('/requests/:id/log', { page: logPage, propose: proposeLog, reads: true });
}

const requestPath = (id: string): string => `requests/${encodeURIComponent(id)}`;

async function list(visit: Visit): Promise<Page> {
  const { ports, query } = visit;
  const id = query('id');
  if (id !== '') return oneRequest({ ...visit, part: () => id });
  const account = query('account');
  const before = query('before');
  const found =
    account === '' ? undefined : await ports.pages.requests(account, before || undefined, pageRows);
  const label = 'Id of a request or an answer';
  return {
    title: 'Requests',
    body: html`<div class="columns">
        ${search({
          action: 'requests',
          verb: 'Explain it',
          fields: [{ name: 'id', label, placeholder: 'chatcmpl-01jd3k… or x-request-id' }],
        })}
        ${search({
          action: 'requests',
          verb: 'Show',
          fields: [{ name: 'account', label: 'Newest of a customer', value: account }],
        })}
      </div>
      ${
        found === undefined
          ? emptyBox(
              'Why did it fail, why did it cost that much?',
              'Customers have the id in the header x-request-id and in each answer. Without one, look at the newest requests of the customer.',
            )
          : html`${warnings(found.rows.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])))}
            ${requestTable(
              found.rows.flatMap((each) => ('row' in each ? [each.row] : [])),
              visit,
            )}
            ${pager({
              count: `${found.rows.length} requests, newest first`,
              first: before && pathWith('requests', { account }),
              next: found.next && pathWith('requests', { account, before: found.next }),
            })}`
      }`,
  };
}

const requestTable = (rows: readonly LedgerRow[], { nowMs }: Visit): Markup =>
  table(
    rows.filter((row): row is CloseRow => row.kind !== 'grant'),
    {
      caption: 'Requests',
      markOf: ({ kind, end }) => (kind !== 'settled' || end === 'failed' ? 'warning' : undefined),
      empty: emptyState('No request', 'This customer has no request in the ledger: is the name right?'),
      columns: [
        head('Request', ({ id }) => html`<a href="${requestPath(id)}"><code>${id}</code></a>`),
        column('Began', (row) => when(ledgerTimeMs(row), nowMs), { sortBy: (row) => ledgerTimeMs(row) }),
        column('Model', ({ model, alias }) =>
          alias === undefined ? model : html`${model} <span class="soft">by ${alias}</span>`,
        ),
        column('Channel', ({ channel }) => channel ?? '–'),
        column('End', endBadge),
        number('Input', ({ prompt_tokens: input = 0 }) => grouped(input), {
          sortBy: ({ prompt_tokens }) => prompt_tokens ?? 0,
        }),
        number('Output', ({ completion_tokens: output = 0 }) => grouped(output), {
          sortBy: ({ completion_tokens }) => completion_tokens ?? 0,
        }),
        number(
          'First content',
          ({ first_content_ms: first }) => (first === undefined ? '–' : milliseconds(first)),
          { sortBy: ({ first_content_ms }) => first_content_ms ?? 0 },
        ),
        number('Charged', ({ charge }) => yuan(charge)),
      ],
    },
  );

function endBadge({ kind, end }: CloseRow): Markup {
  if (kind !== 'settled') return badge(kind, 'warning');
  return badge(end ?? kind, end === 'failed' ? 'warning' : end === 'client_gone' ? 'calm' : 'good');
}

const notInLedger =
  'The ledger has no row of this id. The call was refused before it cost anything, is still under way, or ended within the last seconds.';
const partOfId = 'This is the beginning of an id, which the ledger does not find.';

async function oneRequest(visit: Visit): Promise<Page> {
  const { ports, identity, options, nowMs } = visit;
  const id = visit.part('id');
  const logButton = (of: string): Markup =>
    actionButton(`${requestPath(of)}/log`, identity.formToken, 'What the log says');
  const isPart = !id.startsWith('grant#') && !askedId(id).isWhole;
  const found = isPart ? undefined : await bookedRequest(ports, id);
  if (!found)
    return {
      title: id,
      above: [],
      body: html`${notice('warning', isPart ? partOfId : notInLedger)}
        <p>The log has a line of each call that was refused:</p>
        ${logButton(id)}`,
      status: 404,
    };
  const { row, late, problem } = found;
  const isRefundable = row.kind !== 'grant' && row.charge + (late?.charge ?? 0n) > 0n && !options.readOnly;
  const refund = html`<a class="button" href="${requestPath(row.id)}/refund">Refund</a>`;
  return {
    title: row.id,
    above: [[pathWith('requests', { account: row.account }), row.account]],
    actions: html`${logButton(row.id)}${isRefundable ? refund : nothing}`,
    body: html`${problem !== undefined && notice('bad', `The charge does not follow from the row: ${problem}`)}
      <p>
        ${row.kind === 'grant' ? badge('grant') : endBadge(row)} of ${customerLink(row.account)},
        ${when(ledgerTimeMs(row), nowMs)}
      </p>
      ${stepList(requestSteps(row, late))}`,
  };
}

const refundPage = formPage(({ part }) => {
  const id = part('id');
  return {
    title: `Refund ${id}`,
    above: [[requestPath(id), id]],
    fields: [
      { name: 'amount', label: 'Amount, yuan', input: 'decimal', help: 'Empty: all that is left.' },
      { name: 'reason', label: 'Reason', help: 'The customer sees it in their usage.' },
    ],
    cancel: requestPath(id),
  };
});

async function proposeRefund({ ports, part, field }: Visit): Promise<Proposal> {
  const id = part('id');
  const [amount, reason] = [typed(field('amount')), typed(field('reason'))];
  const plan = await planRefundCharge(ports, { id, amount, reason });
  const words = { title: `Refund ${id}`, back: requestPath(id), verb: 'Refund it' };
  return proposed(plan, words, async () => ({
    ...grantSaid(plan, await carryOutGrant(ports, plan, appliedWaitMs)),
    next: [[customerPath(plan.account), `To ${plan.account}`]],
  }));
}

const logPage = formPage(({ part }) => ({
  title: `What the log says of ${part('id')}`,
  verb: 'Search it',
}));

/** Candidates, refusals, times. A search that may take seconds, so it runs as work. */
async function proposeLog({ ports, part }: Visit): Promise<Proposal> {
  const id = part('id');
  return reading(
    { title: `What the log says of ${id}`, back: requestPath(id), verb: 'Search it' },
    async (onProgress) => {
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
  );
}
