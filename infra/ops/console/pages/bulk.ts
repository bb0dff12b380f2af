/** Many rows at once: a sheet of CSV in a form; what differs is shown and confirmed. */
import { counted, grouped, usageFailure } from '../../../../shared/operate/plan.ts';
import {
  customerSheet,
  keySheet,
  markColumn,
  planSheet,
  ruleSheet,
  sheetLines,
  type Sheet,
} from '../../fields/sheet.ts';
import { formBytesMax } from '../guard.ts';
import { lead, notice } from '../layout/frame.ts';
import { rowProposal } from '../visit/row-proposal.ts';
import { formPage, proposedWrites, type Proposal, type Routes, type Visit } from '../visit/visit.ts';

/** `back`: the list that it belongs to. */
const bulks: readonly { sheet: Sheet; back: string; title: string }[] = [
  { sheet: keySheet, back: 'keys', title: 'Keys as CSV' },
  { sheet: customerSheet, back: 'customers', title: 'Customers as CSV' },
  { sheet: ruleSheet, back: 'charges', title: 'Prices as CSV' },
];
type Bulk = (typeof bulks)[number];

export function bulkPages(routes: Routes): void {
  for (const bulk of bulks)
    routes.form(`/${bulk.back}-csv`, { page: csvPage(bulk), propose: (visit) => propose(visit, bulk) });
}

/** With room for what is typed into it. */
const csvBytesMax = formBytesMax - 48 * 1024;
/** Of lines as a browser sends them: a sign of Chinese has nine bytes then, a comma three. */
const bytesOf = (lines: string): number =>
  new URLSearchParams([['', lines.replaceAll('\n', '\r\n')]]).toString().length;
const editsMax = 500;

const csvPage = ({ sheet, title, back }: Bulk) =>
  formPage(async ({ ports, query }) => {
    const { header, lines } = await sheetLines(ports, sheet, query('text'));
    let size = 0;
    const fitting = lines.filter((line) => (size += bytesOf(line)) <= csvBytesMax);
    return {
      title,
      intro: [
        lead(
          'Copy it into a spreadsheet, change cells, paste the whole back. Lines may be left out: their rows stay. An empty cell is the default.',
        ),
        fitting.length < lines.length &&
          notice(
            'warning',
            `The first ${grouped(fitting.length)} of ${grouped(lines.length)}: add ?text= and a part of a name to the address.`,
          ),
      ],
      fields: [
        {
          name: 'csv',
          label: counted(fitting.length, 'row'),
          kind: 'area',
          value: header + fitting.join(''),
          help: `Columns that are not named here are not read; ${markColumn} refuses a row that somebody else changed since.`,
        },
      ],
      verb: 'Compare',
      cancel: back,
    };
  });

async function propose(visit: Visit, { sheet, title, back }: Bulk): Promise<Proposal> {
  const plan = await planSheet(visit.ports, sheet, { csv: visit.field('csv'), max: editsMax });
  if (plan.changes.length === 0) throw usageFailure('csv: nothing differs from the rows');
  if ('edit' in plan) return rowProposal(visit, plan, { title, back });
  return proposedWrites(visit, plan, {
    title: `Write ${counted(plan.changes.length, 'row')}`,
    back,
    verb: 'Write them',
    grave: plan.questions.length > 1,
    said: (made) => ({
      lines: [`${counted(made.length, 'row is', 'rows are')} written; live within 30 seconds.`],
    }),
  });
}
