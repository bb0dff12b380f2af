/** The commands `export` and `apply` of keys, customers and prices: many rows as a sheet of CSV. */
import { carryOutWrites } from '../../../../shared/operate/rows.ts';
import { planSheet, readSheetLines, type Sheet } from '../../fields/sheet.ts';
import {
  defineChange,
  viewers,
  defineView,
  defineWrite,
  type CommandDefinition,
  type Policies,
} from '../command.ts';
import { defineSave, waitOption, type WaitOption } from '../config-writing.ts';
import { readSheetFile, writeTextFile } from '../text-files.ts';
import { formatCount } from '../../../../shared/operate/plan.ts';

type WrittenSheet = Awaited<ReturnType<ReturnType<typeof defineSave>['carryOut']>>;

/** Each is planned alone, by some requests. */
const editsMax = 5000;

export const defineSheets = (
  noun: string,
  sheet: Sheet,
  readers: Policies = viewers,
): CommandDefinition[] => [
  defineView('export', {
    does: 'export to a CSV file, for editing in a spreadsheet',
    takes: { '<file>': 'output file; overwritten if it exists' },
    examples: [`${noun} export ${noun}s.csv`],
    policies: readers,
    async run({ ports, terminal }, path: string) {
      const { header, lines } = await readSheetLines(ports, sheet);
      await writeTextFile(path, header + lines.join(''));
      terminal.printAs({ file: path, rows: lines.length }, () =>
        terminal.print(`Exported ${formatCount(lines.length, 'row')} to ${path}.`),
      );
    },
  }),
  defineChange('apply', {
    does: 'apply changes from a CSV file; rows not in the file are left unchanged',
    takes: {
      '<file>': 'CSV file from `export`; may omit rows and columns',
      ...(sheet.table === 'charges' && waitOption),
    },
    examples: [`${noun} apply ${noun}s.csv --dry-run`],
    async plan(run, path: string, options: Partial<WaitOption>) {
      const plan = await planSheet(run.ports, sheet, { csv: await readSheetFile(path), max: editsMax });
      if ('edit' in plan) return defineSave(run, plan, { wait: options.wait ?? 0 });
      return defineWrite<WrittenSheet>({
        plan,
        carryOut: async () => ({ written: await carryOutWrites(run.ports, plan), version: undefined }),
        print: ({ print }, { written }) =>
          print(`Saved ${formatCount(written.length, 'row')}; live within 30 s.`),
        facts: (made) => ({ rows: made?.written.length ?? 0 }),
      });
    },
  }),
];
