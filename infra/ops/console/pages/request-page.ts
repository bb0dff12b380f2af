/** Explains one request by the log and the ledger, suggests the next step, and refunds it. */
import { findLedgerTimeMs, type CloseRow } from '../../../../shared/billing/ledger-row.ts';
import { convertToYuanNumber } from '../../../../shared/billing/money.ts';
import { carryOutGrant } from '../../../../shared/operate/customers/grants.ts';
import { planRefundCharge } from '../../../../shared/operate/customers/refund-charge.ts';
import {
  explainMissingRow,
  explainSteps,
  findLoggedRequests,
} from '../../../../shared/operate/requests/explain-request.ts';
import {
  parseAskedId,
  findBookedRequest,
  requestSteps,
} from '../../../../shared/operate/requests/find-request.ts';
import type { ListedRequest } from '../../../../shared/operate/requests/list-requests.ts';
import { adviseNextStep } from '../../../../shared/operate/requests/next-step.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { html, nothing, type Markup } from '../../markup.ts';
import { describeGrantOutcome } from '../../outcomes.ts';
import { renderAge } from '../layout/figures.ts';
import { parseText } from '../../fields/row-field.ts';
import { renderEmptyBox, renderNotice, type Page } from '../layout/frame.ts';
import { renderBadge, renderBoth, renderDefinitions } from '../layout/table.ts';
import {
  grantWaitMs,
  renderCustomerLink,
  customerPathOf,
  buildFormPage,
  may,
  createProposal,
  buildPath,
  type Proposal,
  type Routes,
  type Visit,
} from '../visit/visit.ts';

export function addRequestPages(routes: Routes): void {
  routes.slowPage('/requests/:id', readRequest, renderRequest);
  routes.form('/requests/:id/refund', { page: refundPage, propose: proposeRefund, by: 'support' });
}

export const requestPathOf = (id: string): string => `requests/${encodeURIComponent(id)}`;

/** From the path, or typed into the search: `requests/find?id=`. */
const readTypedId = ({ parameter, query }: Visit): string => query('id') || parameter('id');

/** Searches the log around the time in the id, or around `at`, the time of the log line, which reads less. */
async function readRequest(visit: Visit) {
  const written = readTypedId(visit);
  if (written.startsWith('grant#')) return { requests: [], note: undefined };
  return findLoggedRequests(visit.ports, parseAskedId(written), Number(visit.query('at')) || undefined);
}

type FoundRequest = Awaited<ReturnType<typeof readRequest>>;

async function renderRequest(visit: Visit, { requests, note }: FoundRequest): Promise<Page> {
  const { ports, identity, nowMs } = visit;
  const [logged, ...others] = requests;
  if (others.length > 0)
    throw usageFailure(`several requests start with this ID: ${requests.map((each) => each.id).join(', ')}`);
  const id = logged?.id ?? readTypedId(visit);
  const isWhole = id.startsWith('grant#') || parseAskedId(id).isWhole;
  const found = isWhole ? await findBookedRequest(ports, id) : undefined;
  const { row, late, problem } = found ?? {};
  const next = logged && adviseNextStep(logged, ports.target);
  const account = row?.account ?? logged?.line?.fields['account'];
  const isRefundable =
    row && row.kind !== 'grant' && row.charge + (late?.charge ?? 0n) > 0n && may(identity, 'support');
  return {
    title: row?.id ?? id,
    above: typeof account === 'string' ? [[buildPath('requests', { account }), account]] : [],
    actions: isRefundable
      ? html`<a class="button" href="${requestPathOf(row.id)}/refund">Refund</a>`
      : nothing,
    body: html`${problem !== undefined && renderNotice('bad', `The charge does not match its ledger row: ${problem}`)}
    ${
      row &&
      html`<p>
        ${row.kind === 'grant' ? renderBadge('grant') : renderStatus(requestLineOf(row).line)} for
        ${renderCustomerLink(row.account)}, ${renderAge(findLedgerTimeMs(row), nowMs)}
      </p>`
    }
    ${next !== undefined && renderNotice('warning', html`<strong>Next step:</strong> ${next}`)}
    ${
      logged &&
      html`<h2>What happened <span class="soft">from the log</span></h2>
        ${renderDefinitions('steps', explainSteps(logged))}`
    }
    ${note !== undefined && renderNotice('calm', note)}
    ${
      row
        ? html`<h2>What it cost <span class="soft">from the ledger</span></h2>
            ${renderDefinitions('steps', requestSteps(row, late))}`
        : isWhole
          ? renderEmptyBox('No ledger row', logged ? explainMissingRow(logged, nowMs) : notInLedger)
          : renderEmptyBox('What it cost', shortId)
    }`,
    status: row || logged ? 200 : 404,
  };
}

const notInLedger =
  'The ledger has no row with this ID: the call was refused before it cost anything, is still running, or has just ended.';
const shortId = 'Enter the full ID to see what the request cost.';

const refundPage = buildFormPage(({ parameter }) => {
  const id = parameter('id');
  return {
    title: `Refund ${id}`,
    above: [[requestPathOf(id), id]],
    fields: [
      {
        name: 'amount',
        label: 'Amount (¥)',
        input: 'decimal',
        help: 'Leave empty to refund all that is left.',
      },
      { name: 'reason', label: 'Reason', help: 'The customer sees this in their usage.' },
    ],
    cancel: requestPathOf(id),
  };
});

async function proposeRefund({ ports, parameter, field }: Visit): Promise<Proposal> {
  const id = parameter('id');
  const [amount, reason] = [parseText(field('amount')), parseText(field('reason'))];
  const plan = await planRefundCharge(ports, { id, amount, reason });
  const words = { title: `Refund ${id}`, back: requestPathOf(id), verb: 'Refund' };
  const proposal = createProposal(plan, words, async () => ({
    ...describeGrantOutcome(plan, await carryOutGrant(ports, plan, grantWaitMs)),
    next: [[customerPathOf(plan.account), `Open ${plan.account}`]],
  }));
  return { ...proposal, refunds: plan.amount };
}

export function renderStatus({ status, outcome, code, reason, retries }: ListedRequest['line']): Markup {
  const mark = { refused: 'warning', failed: 'bad', limited: 'bad', client_gone: 'calm' } as const;
  const words =
    (status && code) ?? (outcome === 'client_gone' ? 'client disconnected' : retries && 'retried');
  return html`<span title="${reason ?? ''}"
    >${renderBoth(renderBadge(String(status ?? code), mark[outcome as keyof typeof mark] ?? 'good'), words || nothing)}</span
  >`;
}

export const requestLineOf = ({ charge, reserved: _reserved, ...row }: CloseRow): ListedRequest => ({
  atMs: Date.parse(row.at),
  at: row.at,
  line: {
    ...row,
    request_id: row.id,
    key_hint: row.key,
    outcome: row.end === 'failed' || row.kind !== 'settled' ? 'failed' : row.end,
    code: row.kind === 'settled' ? (row.end ?? row.kind) : row.kind,
    FirstContentMs: row.first_content_ms,
    ChargeYuan: convertToYuanNumber(charge),
  },
});
