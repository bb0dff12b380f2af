/** Audit: marks of rows and balances at once; and all charges of one customer, where a page can read them. */
import { configFindings } from '../../../../shared/operate/config/row-changes.ts';
import {
  auditBalances,
  auditLedger,
  type AuditedBalances,
} from '../../../../shared/operate/ledger/audit-ledger.ts';
import { counted, grouped, Failure, usageFailure, shellWord } from '../../../../shared/operate/plan.ts';
import { exportLines } from '../../export-lines.ts';
import { html, type Markup } from '../../markup.ts';
import { actionButton, form, type SentForm } from '../layout/form.ts';
import { command, emptyState, lead, type Page } from '../layout/frame.ts';
import { column, head, pager, table, wide } from '../layout/table.ts';
import {
  customerLink,
  customerPath,
  pathWith,
  type Answered,
  type Routes,
  type Visit,
} from '../visit/visit.ts';
import { findingTable } from './overview.ts';

/** A ledger row is some 600 bytes; more of them than this is work for the command line. */
const rowsMax = 500_000;
const balancesOfPage = 300;

export function auditPages(routes: Routes): void {
  routes.file('/export', 'everything.jsonl', ({ ports }) => exportLines(ports, {}));
  routes.form('/audit', { page: auditPage, answer: audited });
}

async function auditPage(visit: Visit, tried?: SentForm): Promise<Page> {
  const { ports, identity, options, query } = visit;
  const [findings, balances] = await Promise.all([
    configFindings(ports),
    auditBalances(ports, { after: query('after') || undefined, limit: balancesOfPage }),
  ]);
  return {
    title: 'Audit',
    body: html`<h2>Rows</h2>
      ${findingTable(findings)}
      <h2>Balances</h2>
      ${balanceTable(balances, visit)}
      <h2>Money of a customer</h2>
      ${lead(`Recomputes each charge from its row and compares balance, grants, rows and sums. It reads all rows of the customer, of at most ${grouped(rowsMax)}.`)}
      ${form({
        action: 'audit',
        formToken: identity.formToken,
        fields: [{ name: 'account', label: 'Customer', required: true, value: query('account') }],
        verb: 'Audit it',
        tried,
      })}
      <h2>Every charge of all customers</h2>
      ${lead('That reads the whole ledger: minutes for a million rows, so no page does it.')}
      ${command(ports.target, 'audit')}
      ${
        options.exports &&
        html`<h2>Everything in one file</h2>
          ${lead('Channels, prices, plans, settings, customers, keys (their hashes), grants and the whole ledger, a JSON object a line. No secret, no prompt, no answer.')}
          ${actionButton('export', identity.formToken, 'Download it')}`
      }`,
  };
}

function balanceTable({ count, findings, next }: AuditedBalances, { query }: Visit): Markup {
  const isFirst = query('after') === '';
  const words = next === undefined ? (isFirst ? ', all there are' : ', the last ones') : '';
  return html`${table(findings, {
    caption: 'Balances that do not add up',
    markOf: () => 'bad',
    empty: emptyState(
      count === 0 ? 'No customer yet' : 'These balances add up',
      'What was granted is what was spent, is reserved and is left. Charges are not recomputed.',
    ),
    columns: [
      head('Customer', ({ account }) => customerLink(account)),
      column('What', ({ finding }) => wide(finding)),
    ],
  })}
  ${pager(`Looked at ${counted(count, 'customer')}${words}`, next && pathWith('audit', { after: next }))}`;
}

async function audited({ ports, field }: Visit): Promise<Answered> {
  const account = field('account');
  if (account === '') throw usageFailure('account: found nothing, wanted a name');
  const quota = await ports.ledger.quota(account);
  if (!quota) throw usageFailure(`account: there is no balance of ${account}, so nothing to audit`);
  if ('problem' in quota) throw new Failure(quota.problem);
  const rows = quota.row.settled;
  if (rows > rowsMax)
    throw usageFailure(
      `account: ${account} has ${grouped(rows)} rows, more than a page audits: npx --no relay-ops audit --account ${shellWord(account)}`,
    );
  const audit = await auditLedger(ports, { account, waitMs: 0 });
  const words = `${counted(audit.rows, 'row')} of ${account}`;
  const { length } = audit.findings;
  return {
    title: `Audit ${account}`,
    back: 'audit',
    outcome: {
      lines: [length === 0 ? `All ${words} add up.` : `${counted(length, 'finding')} in ${words}.`],
      warnings: [...audit.findings, ...audit.aboveHold],
      next: [[customerPath(account), `To ${account}`]],
    },
  };
}
