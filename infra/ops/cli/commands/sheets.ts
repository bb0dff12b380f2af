/** The commands `export` and `apply` for keys, customers, grants and prices as CSV sheets. `apply` also writes a file with the result. */
import { mkdir, open, rm } from 'node:fs/promises';
import path from 'node:path';
import {
  carryOutLines,
  nameSheetKey,
  type LineOutcome,
  type SheetPlan,
} from '../../../../shared/operate/apply-sheet.ts';
import { Failure, formatCount, type Plan } from '../../../../shared/operate/plan.ts';
import { asRecord, parseJson } from '../../../../shared/wire/json.ts';
import { listColumns, planRuleSheet, planSheet, readSheetLines, type Sheet } from '../../fields/sheet.ts';
import { describeResult, formatResult, readResultKeys } from '../../sheet-result.ts';
import {
  createPreview,
  defineChange,
  viewers,
  defineView,
  defineWrite,
  printOutcome,
  type CommandDefinition,
  type CommandRun,
  type CommandWrite,
  type Policies,
} from '../command.ts';
import { defineSave, waitOption, type WaitOption } from '../config-writing.ts';
import { readSheetFile, readTextFileIfAny, replaceFile, writeTextFile } from '../text-files.ts';
import { parseNumber } from '../option-values.ts';

type WrittenRules = Awaited<ReturnType<ReturnType<typeof defineSave>['carryOut']>>;

interface ApplyOptions extends WaitOption {
  result?: string;
}

const linesMax = 5000;

export const defineExport = (noun: string, sheet: Sheet, readers: Policies = viewers): CommandDefinition =>
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
  });

export const defineApply = (noun: string, sheet: Sheet): CommandDefinition =>
  sheet.table === 'charges' ? defineApplyRules(noun) : defineApplyLines(noun, sheet);

const applyWords = {
  does: 'apply a CSV file; blank cells and rows not in the file are left unchanged, `-` clears a value',
  takes: { '<file>': 'CSV file with a header; may omit rows and columns' },
};

const defineApplyRules = (noun: string): CommandDefinition =>
  defineChange('apply', {
    ...applyWords,
    takes: { ...applyWords.takes, ...waitOption },
    examples: [`${noun} apply ${noun}s.csv --dry-run`],
    async plan(run, file: string, { wait }: WaitOption): Promise<CommandWrite<WrittenRules>> {
      const plan = await planRuleSheet(run.ports, { csv: await readSheetFile(file), max: linesMax });
      return defineSave(run, plan, { wait });
    },
  });

const defineApplyLines = (noun: string, sheet: Sheet): CommandDefinition =>
  defineChange('apply', {
    ...applyWords,
    takes: {
      ...applyWords.takes,
      '--result <file>':
        'file for new keys and messages to customers (default: customers.result.csv for customers.csv)',
      '--wait <seconds>': ['how long to wait until grants are applied', parseNumber, 15],
    },
    examples: [`${noun} apply ${noun}s.csv --dry-run`],
    notes: `
Safe to repeat after an interruption: grants and keys have ids, so nothing is credited or created twice. Columns:
${listColumns(sheet).join(', ')}`,
    async plan(run, file: string, { wait, result = nameResult(file) }: ApplyOptions) {
      const csv = await readSheetFile(file);
      const plan = await planSheet(run.ports, sheet, { csv, max: linesMax });
      const journal = await openJournal(result);
      return defineWrite<LineOutcome[]>({
        plan: journal.kept.size > 0 ? addResultToPlan(plan) : plan,
        preview: createPreview(run.ports, plan),
        async carryOut() {
          const outcomes = await applyLines(run, plan, { journal, result, waitMs: wait * 1000 });
          printOutcome(run.terminal, describeResult(outcomes));
          run.terminal.print(`New keys and messages are in ${result}; keep it secret.`);
          if (outcomes.some(({ state }) => state === 'failed'))
            throw new Failure('some lines failed: see above');
          return outcomes;
        },
        facts: (outcomes) => ({
          rows: outcomes?.filter(({ state }) => state === 'new' || state === 'changed').length ?? 0,
          result,
        }),
      });
    },
  });

const nameResult = (file: string): string => `${file.replace(/\.(csv|tsv|txt)$/i, '')}.result.csv`;

/** A run that was killed after its last write left keys that no result file contains. */
const addResultToPlan = (plan: SheetPlan): Plan<unknown> => ({
  ...plan,
  changes: [...plan.changes, 'result'],
  effect: [...plan.effect, 'Complete the result of an interrupted run'],
});

type Journal = Awaited<ReturnType<typeof openJournal>>;

/**
 * Reads `<result>.part`: secrets, one JSON object per line, each written before its key is created. A complete run moves them to the
 * result. A last line that is cut off belongs to a key that was never created.
 */
async function openJournal(result: string) {
  const [written, earlier = ''] = await Promise.all([
    readTextFileIfAny(`${result}.part`),
    readTextFileIfAny(result),
  ]);
  const lines = (written ?? '').split('\n').map((line) => asRecord(parseJson(line)));
  const kept = lines.flatMap(({ account, id, secretKey }): [string, string][] =>
    [account, id, secretKey].every((each) => typeof each === 'string')
      ? [[nameSheetKey(String(account), String(id)), String(secretKey)]]
      : [],
  );
  return { kept: new Map(kept), earlier, secrets: new Map([...readResultKeys(earlier), ...kept]) };
}

async function applyLines(
  { ports }: CommandRun,
  plan: SheetPlan,
  { journal, result, waitMs }: { journal: Journal; result: string; waitMs: number },
): Promise<LineOutcome[]> {
  const part = `${result}.part`;
  const file = await mkdir(path.dirname(result), { recursive: true })
    .then(() => open(part, 'a', 0o600))
    .catch(() => {
      throw new Failure(`cannot write the file ${part}; nothing was changed`);
    });
  try {
    const outcomes = await carryOutLines(ports, plan, {
      secrets: journal.secrets,
      waitMs,
      async keep(made) {
        // Start on a new line: an interrupted run may have left half a line.
        await file.appendFile(`\n${JSON.stringify(made)}\n`);
        await file.datasync();
      },
    });
    await replaceFile(
      result,
      formatResult([...outcomes, ...listOtherKeys(journal, outcomes)], journal.earlier),
    );
    // Keep the secrets if a line failed: if only the reply was lost, its key exists.
    if (outcomes.every(({ state }) => state !== 'failed')) await rm(part);
    return outcomes;
  } finally {
    await file.close();
  }
}

/** Lists the keys that an interrupted run of another sheet left for the same result file. */
function listOtherKeys({ kept }: Journal, outcomes: readonly LineOutcome[]): LineOutcome[] {
  const named = new Set(outcomes.map(({ line: { account, key } }) => nameSheetKey(account, key?.id ?? '')));
  return [...kept].flatMap(([name, secretKey]): LineOutcome[] => {
    if (named.has(name)) return [];
    const [account = '', id = ''] = JSON.parse(name) as string[];
    const line = { place: '', account, key: { id, hash: undefined, attributes: {}, isNew: false } };
    return [{ line, state: 'unchanged', secretKey, problem: 'left by an interrupted run: see `key check`' }];
  });
}
