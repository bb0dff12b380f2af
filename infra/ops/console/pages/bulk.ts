/** Edits and creates many rows at once from a CSV sheet that is typed or uploaded. Shows the changes and asks for confirmation. */
import { carryOutLines, type SheetPlan } from '../../../../shared/operate/apply-sheet.ts';
import { formatCount, formatInteger, usageFailure } from '../../../../shared/operate/plan.ts';
import {
  customerSheet,
  grantSheet,
  keySheet,
  markColumn,
  planRuleSheet,
  planSheet,
  ruleSheet,
  listColumns,
  readSheetLines,
  type Sheet,
} from '../../fields/sheet.ts';
import { describeResult, formatResult } from '../../sheet-result.ts';
import { formBytesMax } from '../guard.ts';
import { renderLead, renderNotice } from '../layout/frame.ts';
import { proposeRowEdit } from '../visit/row-proposal.ts';
import {
  buildFormPage,
  createProposal,
  showWrites,
  type Proposal,
  type Routes,
  type Visit,
} from '../visit/visit.ts';

/** `start`: the header of a sheet that starts empty. Without it, the form contains the existing rows. */
type Bulk = readonly [path: string, title: string, sheet: Sheet, back: string, start?: string];

const sheetForms: readonly Bulk[] = [
  ['keys-csv', 'Edit keys as CSV', keySheet, 'keys'],
  ['keys-sheet', 'Add keys from a sheet', keySheet, 'keys', 'account,id,name,models,rpm,budget.amount'],
  ['customers-csv', 'Edit customers as CSV', customerSheet, 'customers'],
  [
    'customers-sheet',
    'Add customers from a sheet',
    customerSheet,
    'customers',
    'account,note,contact.email,rpm,plan.level,grant.id,grant.amount,grant.reason,key.id,key.models',
  ],
  [
    'grants-sheet',
    'Credit customers from a sheet',
    grantSheet,
    'customers',
    'account,grant_id,amount,reason',
  ],
  ['charges-csv', 'Edit prices as CSV', ruleSheet, 'charges'],
];

export function addBulkPages(routes: Routes): void {
  for (const bulk of sheetForms)
    routes.form(`/${bulk[0]}`, { page: buildCsvForm(bulk), propose: (visit) => propose(visit, bulk) });
}

/** Leaves room for what is typed into it. */
const csvBytesMax = formBytesMax - 48 * 1024;
/** Counts bytes as a browser sends them: a Chinese character has nine, a comma three. */
const bytesOf = (lines: string): number =>
  new URLSearchParams([['', lines.replaceAll('\n', '\r\n')]]).toString().length;
const editsMax = 500;
/** Most credits are applied within two seconds. The result names those that are not. */
const sheetWaitMs = 3000;

const buildCsvForm = ([, title, sheet, back, start]: Bulk) =>
  buildFormPage(async ({ ports, query }) => {
    const { header, lines } =
      start === undefined
        ? await readSheetLines(ports, sheet, query('text'))
        : { header: `${start}\n`, lines: [] };
    let size = 0;
    const fitting = lines.filter((line) => (size += bytesOf(line)) <= csvBytesMax);
    return {
      title,
      intro: [
        renderLead(
          'Choose or paste a CSV file. A blank cell changes nothing, and - clears a value. Columns and rows that are not in the sheet stay as they are. ' +
            'Each id is credited or created only once, so you can apply a sheet again.',
        ),
        sheet === ruleSheet &&
          renderLead('Prices are in yuan per 1M tokens, or per call. Prices in JSON are per 1,000 tokens.'),
        fitting.length < lines.length &&
          renderNotice(
            'warning',
            `Showing the first ${formatInteger(fitting.length)} of ${formatInteger(lines.length)} rows. To narrow them down, add ?text= and part of a name to the address.`,
          ),
      ],
      fields: [
        {
          name: 'csv',
          label: start === undefined ? formatCount(fitting.length, 'row') : 'Sheet (CSV)',
          kind: 'area',
          value: header + fitting.join(''),
          help:
            `Columns: \`${listColumns(sheet).join('`, `')}\`. ` +
            `If a row has changed since the export, its \`${markColumn}\` rejects the line.`,
        },
      ],
      verb: 'Review changes',
      cancel: back,
    };
  });

async function propose(visit: Visit, [, title, sheet, back]: Bulk): Promise<Proposal> {
  const { ports } = visit;
  const asked = { csv: visit.field('csv'), max: editsMax };
  const plan = sheet === ruleSheet ? await planRuleSheet(ports, asked) : await planSheet(ports, sheet, asked);
  if (plan.changes.length === 0) throw usageFailure('csv: no row has changed');
  return 'edit' in plan ? proposeRowEdit(visit, plan, { title, back }) : proposeLines(visit, plan, back);
}

/** Only the answer contains the keys. If it is lost, the keys still exist, and each can be rotated. */
export const proposeLines = ({ ports }: Visit, plan: SheetPlan, back: string): Proposal => ({
  ...createProposal(
    plan,
    { title: plan.questions[0]?.replace(/\?.*/s, '') ?? '', back, verb: 'Apply', grave: plan.isGrave },
    async () => {
      const run = { secrets: new Map(), keep: async () => undefined, waitMs: sheetWaitMs };
      const outcomes = await carryOutLines(ports, plan, run);
      const keys = outcomes.flatMap(({ secretKey }) => secretKey ?? []);
      const { lines, warnings } = describeResult(outcomes);
      const file = { name: `${back}.result.csv`, text: formatResult(outcomes), keys };
      const isSent = outcomes.some(({ message }) => message !== undefined);
      return { lines, warnings, ...(isSent && { file }) };
    },
  ),
  ...showWrites(ports, plan.changes),
});
