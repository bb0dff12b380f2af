/** Audit: marks of rows and balances at once; all charges of one customer as work that says how long it is. */
import { configFindings } from '../../../../shared/operate/config/row-changes.ts';
import {
  auditBalances,
  type AuditedBalances,
  auditLedger,
} from '../../../../shared/operate/ledger/audit-ledger.ts';
import { formatYuan } from '../../../../shared/billing/amount.ts';
import { imbalance } from '../../../../shared/billing/quota-item.ts';
import { Failure, usageFailure, shellWord } from '../../../../shared/operate/plan.ts';
import { bytes, grouped } from '../layout/figures.ts';
import { form, type Tried } from '../layout/form.ts';
import { type Page, command, emptyState } from '../layout/frame.ts';
import { html, type Markup } from '../layout/markup.ts';
import { pager, table } from '../layout/table.ts';
import type { Proposal, Routes, Visit } from '../visit/visit.ts';

/** A ledger row is some 600 bytes; more of them than this is work for the command line. */
const rowBytes = 600;
const rowsMax = 500_000;
const balancesOfPage = 300;

export function auditPages(routes: Routes): void {
  routes.form('/audit', { page: auditPage, propose: proposeAudit, reads: true });
}

async function auditPage(visit: Visit, tried?: Tried): Promise<Page> {
  const [findings, balances] = await Promise.all([
    configFindings(visit.ports),
    auditBalances(visit.ports, { after: visit.query('after') || undefined, limit: balancesOfPage }),
  ]);
  return {
    title: 'Audit',
    section: 'audit',
    body: html`<h2>Rows</h2>
      ${table({
        caption: 'Rows with a problem or a warning',
        rows: findings,
        markOf: ({ problem }) => (problem === undefined ? 'warning' : 'bad'),
        empty: emptyState(
          'All rows of the configuration are good',
          'Keys, accounts and grants: relay-ops check.',
        ),
        columns: [
          { title: 'Row', isHead: true, show: ({ table: of, key }) => `${of} ${key}` },
          { title: 'Mark', show: ({ problem }) => (problem === undefined ? '_warning' : '_problem') },
          {
            title: 'What',
            show: ({ problem, warning }) => html`<span class="wide">${problem ?? warning}</span>`,
          },
        ],
      })}
      <h2>Balances</h2>
      ${balanceTable(balances, visit)}
      <h2>Money of a customer</h2>
      <p class="lead">
        Recomputes each charge from its row and compares balance, grants, rows and sums. It reads all rows of
        the customer, and says how many before it begins.
      </p>
      ${form({
        action: 'audit',
        formToken: visit.identity.formToken,
        fields: [{ name: 'account', label: 'Customer', required: true, value: visit.query('account') }],
        verb: 'Look at what it reads',
        tried,
      })}
      <h2>Every charge of all customers</h2>
      <p class="lead">That reads the whole ledger: minutes for a million rows, so no page does it.</p>
      ${command('relay-ops audit')}`,
  };
}

const balanceTable = ({ count, findings, next }: AuditedBalances, { query }: Visit): Markup => {
  const isFirst = query('after') === '';
  const words = `Looked at ${grouped(count)} customers${next === undefined ? (isFirst ? ', all there are' : ', the last ones') : ''}`;
  return html`${table({
    caption: 'Balances that do not add up',
    rows: findings,
    markOf: () => 'bad',
    empty: emptyState(
      count === 0 ? 'No customer yet' : 'These balances add up',
      'What was granted is what was spent, is reserved and is left. Charges are not recomputed.',
    ),
    columns: [
      {
        title: 'Customer',
        isHead: true,
        show: ({ account }) => html`<a href="customers/${encodeURIComponent(account)}">${account}</a>`,
      },
      { title: 'What', show: ({ finding }) => html`<span class="wide">${finding}</span>` },
    ],
  })}
  ${pager({
    count: words,
    ...(!isFirst && { first: 'audit' }),
    ...(next !== undefined && { next: `audit?${new URLSearchParams({ after: next }).toString()}` }),
  })}`;
};

async function proposeAudit({ ports, field }: Visit): Promise<Proposal> {
  const account = field('account');
  if (account === '') throw usageFailure('account: found nothing, wanted a name');
  const quota = await ports.ledger.quota(account);
  if (!quota) throw usageFailure(`account: there is no balance of ${account}, so nothing to audit`);
  if ('problem' in quota) throw new Failure(quota.problem);
  const rows = quota.row.settled;
  if (rows > rowsMax)
    throw usageFailure(
      `account: ${account} has ${grouped(rows)} rows, more than a page audits: relay-ops audit --account ${shellWord(account)}`,
    );
  const difference = imbalance(quota.row);
  return {
    title: `Audit ${account}`,
    back: 'audit',
    effect: [
      `It reads ${grouped(rows)} ledger rows, about ${bytes(rows * rowBytes)} in ${grouped(Math.ceil((rows * rowBytes) / 1024 ** 2))} requests, and writes nothing.`,
      difference === undefined
        ? 'The balance itself adds up.'
        : `The balance does not add up: it differs by ${formatYuan(difference)} yuan.`,
    ],
    questions: [],
    verb: 'Audit it',
    reads: true,
    async carryOut(onProgress) {
      let read = 0;
      const audit = await auditLedger(
        ports,
        { account, waitMs: 0 },
        {
          rowsRead(count) {
            read += count;
            onProgress(`${grouped(read)} of ${grouped(rows)} rows`);
          },
          auditing: () => undefined,
          waitingFor: () => undefined,
        },
      );
      return {
        lines: [
          audit.findings.length === 0
            ? `All ${grouped(audit.rows)} rows of ${account} add up.`
            : `${audit.findings.length} findings in ${grouped(audit.rows)} rows of ${account}.`,
        ],
        warnings: audit.findings,
        next: [[`customers/${encodeURIComponent(account)}`, `To ${account}`]],
      };
    },
  };
}
