/** Creates batches of redeem codes, shows their redemptions, and revokes unredeemed codes. Only the answer to a creation contains codes. */
import {
  carryOutCodes,
  nameBatch,
  codeNames,
  batchNames,
  listBatches,
  listCodes,
  madeNames,
  planCodes,
  planRevokeCodes,
} from '../../../../shared/operate/customers/codes.ts';
import { formatCount, formatWrittenMoney } from '../../../../shared/operate/plan.ts';
import { parseText } from '../../fields/row-field.ts';
import { formatCsv, selectCsvCells } from '../../csv.ts';
import { formatCell, html } from '../../markup.ts';
import { renderEmptyState, renderWarnings } from '../layout/frame.ts';
import { column, head, renderId, renderTable } from '../layout/table.ts';
import {
  buildFormPage,
  createProposal,
  hideFromReaders,
  proposeWrites,
  type Routes,
} from '../visit/visit.ts';

const back = 'customers-codes';
const pathOf = (batch: string): string => `${back}/${encodeURIComponent(batch)}`;
const titleOf = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1).replace('_', ' ');

const amountNames: ReadonlySet<string> = new Set(['amount', 'credited']);

/** Builds the same columns as the command line. The first one names the row. */
const columnsOf = <Name extends string>(
  [first, ...names]: readonly Name[],
  link?: (text: string) => string,
) => [
  head(titleOf(first ?? ''), (row: Readonly<Record<Name, unknown>>) => {
    const text = formatCell(first && row[first]);
    return link ? html`<a href="${link(text)}" data-copy>${text}</a>` : renderId(text);
  }),
  ...names.map((name) =>
    column(titleOf(name), (row: Readonly<Record<Name, unknown>>) =>
      amountNames.has(name) ? formatWrittenMoney(formatCell(row[name])) : formatCell(row[name]),
    ),
  ),
];

export function addCodePages(routes: Routes): void {
  routes.page(`/${back}`, async (visit) => {
    const { batches, problems } = await listBatches(visit.ports);
    const empty = renderEmptyState('No codes yet', 'Customers redeem codes on their page.');
    return {
      title: 'Redeem codes',
      actions: hideFromReaders(visit, html`<a class="button main" href="${back}-new">New batch</a>`),
      body: html`${renderWarnings(problems)}
      ${renderTable(batches, { caption: 'Batches', empty, columns: columnsOf(batchNames, pathOf) })}`,
    };
  });
  routes.page(`/${back}/:batch`, async (visit) => {
    const batch = visit.parameter('batch');
    const { codes, problems } = await listCodes(visit.ports, batch);
    return {
      title: `Codes of ${batch}`,
      above: [[back, 'Redeem codes']],
      actions: hideFromReaders(visit, html`<a class="button" href="${pathOf(batch)}/revoke">Revoke</a>`),
      body: html`${renderWarnings(problems)}
      ${renderTable(codes, { caption: 'Codes', empty: 'No codes.', columns: columnsOf(codeNames) })}`,
    };
  });
  routes.form(`/${back}-new`, {
    page: buildFormPage(({ nowMs, ports }) => ({
      title: 'New batch of codes',
      fields: [
        { name: 'count', label: 'Number of codes', value: '100', input: 'numeric', required: true },
        { name: 'amount', label: 'Amount per code (¥)', input: 'decimal', required: true },
        { name: 'batch', label: 'Name of the batch', value: nameBatch(ports, nowMs), required: true },
        {
          name: 'expires_at',
          label: 'Valid until',
          placeholder: '90d',
          help: 'UTC. Leave empty for no expiry.',
        },
      ],
      cancel: back,
    })),
    async propose({ ports, field }) {
      const expires = parseText(field('expires_at'));
      const plan = await planCodes(ports, {
        count: Number(field('count')),
        amount: field('amount'),
        batch: field('batch'),
        expires,
      });
      return createProposal(plan, { title: 'New batch of codes', back, verb: 'Create codes' }, async () => {
        const codes = await carryOutCodes(ports, plan);
        const text = formatCsv([[...madeNames], ...selectCsvCells(madeNames, codes)]);
        const file = { name: 'codes.csv', text, keys: codes.map(({ code }) => code) };
        return { lines: [`Created ${formatCount(codes.length, 'code')}. Save the file now.`], file };
      });
    },
  });
  routes.form(`/${back}/:batch/revoke`, {
    page: buildFormPage(({ parameter }) => ({
      title: `Revoke ${parameter('batch')}`,
      intro: html`<p>Unredeemed codes stop working. Customers keep the credit of redeemed codes.</p>`,
      cancel: pathOf(parameter('batch')),
    })),
    async propose(visit) {
      const batch = visit.parameter('batch');
      const words = { title: `Revoke ${batch}`, back: pathOf(batch), verb: 'Revoke codes', grave: true };
      return proposeWrites(visit, await planRevokeCodes(visit.ports, batch), {
        ...words,
        report: (made) => ({ lines: [`Revoked ${formatCount(made.length, 'code')}.`] }),
      });
    },
  });
}
