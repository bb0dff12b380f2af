/** Reconciles a vendor's invoice with the cost of a channel's calls, as the command `reconcile` does. Writes nothing. */
import { reconcileChannel, reconciledColumns } from '../../../../shared/operate/reconcile.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { parseCsvLines, delimiterOf } from '../../csv.ts';
import { makeChoice, makeShort, type Field } from '../../fields/row-field.ts';
import { html, nothing } from '../../markup.ts';
import { renderForm } from '../layout/form.ts';
import { renderLead } from '../layout/frame.ts';
import { renderCut, head, renderTable, renderTiles, buildViewColumns } from '../layout/table.ts';
import { buildFormPage, type DirectAnswer, type Routes, type Visit } from '../visit/visit.ts';
import { channelPathOf } from './channels.ts';

export function addInvoicePages(routes: Routes): void {
  routes.form('/channels/:id/invoice', { page: invoicePage, answer: answerInvoice });
}

const marks = { '.': 'point', ',': 'comma' };
const fields: readonly Field[] = [
  { name: 'csv', label: 'Invoice (CSV)', kind: 'area', help: 'One model and one amount per line.' },
  makeShort('month', 'Month (UTC)', 'For example 2026-10.'),
  makeShort('rate', 'Exchange rate', 'Yuan per unit of the invoice’s currency. Default: 1.'),
  makeChoice('decimal', 'Decimal separator', marks, 'detect', { width: 'third' }),
  makeShort('model_column', 'Model column', 'Default: Model.'),
  makeShort('amount_column', 'Amount column', 'Default: Amount.'),
];

const invoicePage = buildFormPage(({ parameter }) => ({
  title: 'Reconcile invoice',
  above: [[channelPathOf(parameter('id')), parameter('id')]],
  intro: renderLead('Compares the vendor’s invoice with the cost of the channel’s calls. Nothing is saved.'),
  fields,
  verb: 'Compare',
}));

const modelsMax = 150;
const warningsMax = 30;
/** A longer invoice would make the result page too long, so it must be pasted again. */
const keptCharactersMax = 40_000;

async function answerInvoice({
  field,
  fields: sent,
  identity,
  parameter,
  path,
  ports,
}: Visit): Promise<DirectAnswer> {
  const [channel, csv, mark] = [parameter('id'), field('csv'), field('decimal')];
  if (csv.trim() === '') throw usageFailure('csv: paste the lines of the invoice');
  const delimiter = delimiterOf(csv);
  const { all, models, month, read, totals, warnings } = await reconcileChannel(ports, {
    channel,
    month: field('month'),
    text: { delimiter, lines: parseCsvLines(csv, delimiter) },
    rate: field('rate') || '1',
    modelColumn: field('model_column') || 'Model',
    amountColumn: field('amount_column') || 'Amount',
    decimal: mark === '.' || mark === ',' ? mark : undefined,
  });
  const isCut = models.length > modelsMax || warnings.length > warningsMax;
  const tried = { fields: csv.length > keptCharactersMax ? { ...sent, csv: '' } : sent };
  const outcome = {
    lines: [
      `Amounts in yuan, from ${read}.`,
      ...totals.slice(0, 9).map((at) => `Skipped line ${at}: it is a total.`),
    ],
    warnings: warnings.slice(0, warningsMax),
    details: html`${renderTiles(sums.slice(0, -1).map(({ title, show }) => ({ name: title, value: show(all) })))}
      ${isCut && renderLead(`Showing some of ${models.length} models and ${warnings.length} warnings.`)}
      ${renderTable(models.slice(0, modelsMax), {
        caption: 'Models, the largest difference first',
        empty: nothing,
        columns: [head('Model', ({ model }) => renderCut(model.slice(0, 200))), ...sums],
        markOf: ({ only }) => (only === null ? undefined : 'warning'),
      })}
      <details>
        <summary>Edit and compare again</summary>
        ${renderForm({ action: path, formToken: identity.formToken, fields, verb: 'Compare', tried })}
      </details>`,
  };
  return { title: `${channel}, ${month}`, back: channelPathOf(channel), outcome };
}

const sums = buildViewColumns(reconciledColumns).slice(1);
