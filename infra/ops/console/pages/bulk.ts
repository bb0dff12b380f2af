/** Edits many rows at once as CSV in a form; the changes are shown and confirmed. */
import { formatCount, formatInteger, usageFailure } from '../../../../shared/operate/plan.ts';
import {
  customerSheet,
  keySheet,
  markColumn,
  planSheet,
  ruleSheet,
  readSheetLines,
  type Sheet,
} from '../../fields/sheet.ts';
import { formBytesMax } from '../guard.ts';
import { renderLead, renderNotice } from '../layout/frame.ts';
import { proposeRowEdit } from '../visit/row-proposal.ts';
import { buildFormPage, proposeWrites, type Proposal, type Routes, type Visit } from '../visit/visit.ts';

const bulks: readonly { sheet: Sheet; back: string; title: string }[] = [
  { sheet: keySheet, back: 'keys', title: 'Edit keys as CSV' },
  { sheet: customerSheet, back: 'customers', title: 'Edit customers as CSV' },
  { sheet: ruleSheet, back: 'charges', title: 'Edit prices as CSV' },
];
type Bulk = (typeof bulks)[number];

export function addBulkPages(routes: Routes): void {
  for (const bulk of bulks)
    routes.form(`/${bulk.back}-csv`, { page: buildCsvForm(bulk), propose: (visit) => propose(visit, bulk) });
}

/** Leaves room for what is typed into it. */
const csvBytesMax = formBytesMax - 48 * 1024;
/** Counts bytes as a browser sends them: a Chinese character has nine, a comma three. */
const bytesOf = (lines: string): number =>
  new URLSearchParams([['', lines.replaceAll('\n', '\r\n')]]).toString().length;
const editsMax = 500;

const buildCsvForm = ({ sheet, title, back }: Bulk) =>
  buildFormPage(async ({ ports, query }) => {
    const { header, lines } = await readSheetLines(ports, sheet, query('text'));
    let size = 0;
    const fitting = lines.filter((line) => (size += bytesOf(line)) <= csvBytesMax);
    return {
      title,
      intro: [
        renderLead(
          'Copy the CSV into a spreadsheet, change cells, and paste it back. Rows that you leave out stay as they are. An empty cell means the default.',
        ),
        fitting.length < lines.length &&
          renderNotice(
            'warning',
            `Showing the first ${formatInteger(fitting.length)} of ${formatInteger(lines.length)} rows. To narrow them down, add ?text= and part of a name to the address.`,
          ),
      ],
      fields: [
        {
          name: 'csv',
          label: formatCount(fitting.length, 'row'),
          kind: 'area',
          value: header + fitting.join(''),
          help: `Other columns are ignored. ${markColumn} rejects a row that somebody else has changed since.`,
        },
      ],
      verb: 'Review changes',
      cancel: back,
    };
  });

async function propose(visit: Visit, { sheet, title, back }: Bulk): Promise<Proposal> {
  const plan = await planSheet(visit.ports, sheet, { csv: visit.field('csv'), max: editsMax });
  if (plan.changes.length === 0) throw usageFailure('csv: no row has changed');
  if ('edit' in plan) return proposeRowEdit(visit, plan, { title, back });
  return proposeWrites(visit, plan, {
    title: `Save ${formatCount(plan.changes.length, 'row')}`,
    back,
    verb: 'Save',
    grave: plan.questions.length > 1,
    report: (made) => ({ lines: [`Saved ${formatCount(made.length, 'row')} (live within 30 s).`] }),
  });
}
