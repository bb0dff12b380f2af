/** A vendor's invoice beside what the calls of its channel cost by the row, as the command `reconcile` has it. Writes nothing. */
import { reconcileChannel, reconciledColumns } from '../../../../shared/operate/reconcile.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { csvLines, delimiterOf } from '../../csv.ts';
import { choiceField, type Field } from '../../fields/row-field.ts';
import { html, nothing } from '../../markup.ts';
import { form } from '../layout/form.ts';
import { lead } from '../layout/frame.ts';
import { cut, head, table, tiles, viewColumns } from '../layout/table.ts';
import { formPage, type Answered, type Routes, type Visit } from '../visit/visit.ts';
import { channelPath } from './channels.ts';

export function invoicePages(routes: Routes): void {
  routes.form('/channels/:id/invoice', { page: invoicePage, answer });
}

const marks = { '.': 'after a point', ',': 'after a comma' };
const fields: readonly Field[] = [
  { name: 'csv', label: 'Invoice, CSV', kind: 'area', help: 'A model and an amount in each line.' },
  { name: 'month', label: 'Month, UTC', help: 'Such as 2026-10.', width: 'third' },
  { name: 'rate', label: 'Rate', help: 'Yuan for one unit of its currency. Empty: 1.', width: 'third' },
  { ...choiceField('decimal', 'Decimals', marks, 'after a point, if clear'), width: 'third' },
  { name: 'model_column', label: 'Column of models', help: 'Empty: Model.', width: 'third' },
  { name: 'amount_column', label: 'Column of amounts', help: 'Empty: Amount.', width: 'third' },
];

const invoicePage = formPage(({ part }) => ({
  title: 'Compare an invoice',
  above: [[channelPath(part('id')), part('id')]],
  intro: lead('What calls of the channel cost by its row, beside its vendor’s invoice. Nothing is written.'),
  fields,
  verb: 'Compare',
}));

const modelsMax = 150;
const warningsMax = 30;
/** A longer one would make the page of the answer too long: it is pasted again. */
const keptCharactersMax = 40_000;

async function answer({ field, fields: sent, identity, part, path, ports }: Visit): Promise<Answered> {
  const [channel, csv, mark] = [part('id'), field('csv'), field('decimal')];
  if (csv.trim() === '') throw usageFailure('csv: found nothing, wanted the lines of the invoice');
  const delimiter = delimiterOf(csv);
  const { all, models, month, read, totals, warnings } = await reconcileChannel(ports, {
    channel,
    month: field('month'),
    text: { delimiter, lines: csvLines(csv, delimiter) },
    rate: field('rate') || '1',
    modelColumn: field('model_column') || 'Model',
    amountColumn: field('amount_column') || 'Amount',
    decimal: mark === '.' || mark === ',' ? mark : undefined,
  });
  const isCut = models.length > modelsMax || warnings.length > warningsMax;
  const tried = { fields: csv.length > keptCharactersMax ? { ...sent, csv: '' } : sent };
  const outcome = {
    lines: [`In yuan, by ${read}.`, ...totals.slice(0, 9).map((at) => `Line ${at} is a total, not counted.`)],
    warnings: warnings.slice(0, warningsMax),
    details: html`${tiles(sums.slice(0, -1).map(({ title, show }) => ({ name: title, value: show(all) })))}
      ${isCut && lead(`The first of ${models.length} models and ${warnings.length} warnings: npx --no relay-ops reconcile has all.`)}
      ${table(models.slice(0, modelsMax), {
        caption: 'Models, the largest difference first',
        empty: nothing,
        columns: [head('Model', ({ model }) => cut(model.slice(0, 200))), ...sums],
        markOf: ({ only }) => (only === null ? undefined : 'warning'),
      })}
      <details>
        <summary>Change something and compare again</summary>
        ${form({ action: path, formToken: identity.formToken, fields, verb: 'Compare', tried })}
      </details>`,
  };
  return { title: `${channel}, ${month}`, back: channelPath(channel), outcome };
}

const sums = viewColumns(reconciledColumns).slice(1);
