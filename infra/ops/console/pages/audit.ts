/** Audits configuration and balances at once, and all charges of one customer if a page can read them. */
import { findConfigProblems } from '../../../../shared/operate/config/row-changes.ts';
import {
  auditBalances,
  auditLedger,
  type AuditedBalances,
} from '../../../../shared/operate/ledger/audit-ledger.ts';
import { formatCount, formatInteger, Failure, usageFailure } from '../../../../shared/operate/plan.ts';
import { exportLines } from '../../export-lines.ts';
import { html, type Markup } from '../../markup.ts';
import { renderActionButton, renderForm, type SentForm } from '../layout/form.ts';
import { renderCommand, renderEmptyState, renderLead, type Page } from '../layout/frame.ts';
import { column, head, renderPager, renderTable, renderWide } from '../layout/table.ts';
import {
  renderCustomerLink,
  customerPathOf,
  buildPath,
  type DirectAnswer,
  type Routes,
  type Visit,
} from '../visit/visit.ts';
import { renderFindings } from './attention.ts';

/** A ledger row is some 600 bytes; more of them than this is work for the command line. */
const rowsMax = 500_000;
const balancesOfPage = 300;

export function addAuditPages(routes: Routes): void {
  routes.file('/export', {
    nameOf: () => 'everything.jsonl',
    type: 'application/jsonl',
    isExport: true,
    lines: ({ ports }) => exportLines(ports, {}),
  });
  routes.file('/audit-all', {
    nameOf: () => 'audit.txt',
    type: 'text/plain',
    isExport: true,
    lines: auditAll,
  });
  routes.form('/audit', { page: renderAudit, answer: auditCustomer });
}

async function renderAudit(visit: Visit, tried?: SentForm): Promise<Page> {
  const { ports, identity, options, query } = visit;
  const [findings, balances] = await Promise.all([
    findConfigProblems(ports),
    auditBalances(ports, { after: query('after') || undefined, limit: balancesOfPage }),
  ]);
  return {
    title: 'Audit',
    body: html`<h2>Configuration</h2>
      ${renderFindings(findings)}
      <h2>Balances</h2>
      ${renderBalances(balances, visit)}
      <h2>Audit one customer</h2>
      ${renderLead(`Recomputes each charge from its ledger row, and compares balance, grants, rows and daily totals. Reads all rows of the customer, ${formatInteger(rowsMax)} at most.`)}
      ${renderForm({
        action: 'audit',
        formToken: identity.formToken,
        fields: [{ name: 'account', label: 'Customer', required: true, value: query('account') }],
        verb: 'Run audit',
        tried,
      })}
      <h2>Audit all customers</h2>
      ${renderLead('This reads the whole ledger: a few minutes per million rows. The file is written during the audit; its last line is the result.')}
      ${options.exports && renderActionButton('audit-all', identity.formToken, 'Download audit')}
      ${renderCommand(ports.target, 'audit')}
      ${
        options.exports &&
        html`<h2>Export</h2>
          ${renderLead('All channels, prices, plans, settings, customers, keys (hashes only), grants and ledger rows as JSON Lines. The file has no secrets, prompts or answers.')}
          ${renderActionButton('export', identity.formToken, 'Download export')}`
      }`,
  };
}

function renderBalances({ count, findings, next }: AuditedBalances, { query }: Visit): Markup {
  const isFirst = query('after') === '';
  const words = next === undefined ? (isFirst ? ' (all)' : ' (last page)') : '';
  return html`${renderTable(findings, {
    caption: 'Balances that don’t add up',
    markOf: () => 'bad',
    empty: renderEmptyState(
      count === 0 ? 'No customers yet' : 'These balances add up',
      'Granted is the sum of spent, reserved and available. Charges are not recomputed here.',
    ),
    columns: [
      head('Customer', ({ account }) => renderCustomerLink(account)),
      column('Problem', ({ finding }) => renderWide(finding)),
    ],
  })}
  ${renderPager(`Checked ${formatCount(count, 'customer')}${words}`, next && buildPath('audit', { after: next }))}`;
}

/** Yields a line for each customer while the audit runs, so that no connection times out. */
async function* auditAll({ ports }: Visit): AsyncGenerator<string> {
  const lines: string[] = [];
  const state = { isRunning: true };
  const audit = auditLedger(ports, { waitMs: 0 }, { auditing: (account) => void lines.push(`${account}\n`) });
  const end = (): void => void (state.isRunning = false);
  const ended = audit.then(end, end);
  for (yield 'Audited customers:\n'; state.isRunning; yield* lines.splice(0))
    await Promise.race([ended, ports.clock.sleep(1000)]);
  const { rows, findings, aboveHold } = await audit;
  yield [
    ...findings,
    ...aboveHold,
    `${formatCount(rows, 'row')}, ${formatCount(findings.length, 'problem')}.`,
  ]
    .map((line) => `${line}\n`)
    .join('');
}

async function auditCustomer({ ports, field }: Visit): Promise<DirectAnswer> {
  const account = field('account');
  if (account === '') throw usageFailure('account: enter a name');
  const quota = await ports.ledger.quota(account);
  if (!quota) throw usageFailure(`account: ${account} has no balance to audit`);
  if ('problem' in quota) throw new Failure(quota.problem);
  const rows = quota.row.settled;
  if (rows > rowsMax)
    throw usageFailure(
      `account: ${account} has ${formatInteger(rows)} rows, too many for this page: download the audit of all customers`,
    );
  const audit = await auditLedger(ports, { account, waitMs: 0 });
  const words = `${formatCount(audit.rows, 'row')} of ${account}`;
  const { length } = audit.findings;
  return {
    title: `Audit ${account}`,
    back: 'audit',
    outcome: {
      lines: [length === 0 ? `All ${words} add up.` : `Found ${formatCount(length, 'problem')} in ${words}.`],
      warnings: [...audit.findings, ...audit.aboveHold],
      next: [[customerPathOf(account), `Open ${account}`]],
    },
  };
}
