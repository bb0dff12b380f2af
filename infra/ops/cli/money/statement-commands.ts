/** The commands that put the relay's sums beside what others reckon: statements for customers, invoices of vendors. */
import { Option, type Command } from 'commander';
import {
  reconcileChannel,
  type ReconcileInput,
} from '../../../../shared/operate/statements/reconcile-channel.ts';
import { viewStatement } from '../../../../shared/operate/statements/statement.ts';
import type { CommandContext } from '../command/command-context.ts';
import { listing } from '../command/common-options.ts';
import { csvLines } from '../terminal/csv.ts';
import { delimiterOf } from '../terminal/delimiter.ts';
import { parseDecimalText, parseNumber } from '../terminal/option-values.ts';
import { masked } from '../terminal/terminal.ts';
import { readSheetFile, writeTextFile } from '../terminal/text-files.ts';
import { printReconciliation, printStatement } from './print-statement.ts';
import { statementHtml } from './statement-html.ts';

interface StatementOptions {
  month: string;
  html?: string;
  marked?: boolean;
  /** Seconds. */
  wait: number;
}

export function addStatementCommands(program: Command, { onTables }: CommandContext): void {
  listing(
    program
      .command('statement')
      .description("a customer's month: opening + grants - charges = closing, exact, by day and model"),
  )
    .argument('<account>', 'as `customer list` shows it')
    .requiredOption('--month <month>', 'such as 2026-10, in UTC')
    .option('--html <file>', 'write one HTML file too, ready to send')
    .option('--marked', 'make it although it does not add up, with a mark (default: it is refused)')
    .option('--wait <seconds>', 'how long to wait until the sums have the last calls', parseNumber, 15)
    .action(
      onTables(
        async (
          { ports, terminal },
          account: string,
          { month, html, marked = false, wait }: StatementOptions,
        ) => {
          const statement = await viewStatement(ports, { account, month, waitMs: wait * 1000 });
          printStatement(terminal, statement, { isMarked: marked });
          if (html === undefined) return;
          await writeTextFile(html, masked(statementHtml(statement)));
          terminal.remark(`${html} has it as HTML`);
        },
      ),
    );

  addReconcile(program, { onTables });
}

function addReconcile(program: Command, { onTables }: Pick<CommandContext, 'onTables'>): void {
  listing(
    program
      .command('reconcile')
      .description("what calls of a channel cost by its row, beside the vendor's invoice, by model"),
  )
    .argument('<channel>', 'as `channel list` shows it')
    .argument(
      '<file>',
      "the vendor's CSV (commas, semicolons or tabs), with a model and an amount in each line",
    )
    .requiredOption('--month <month>', 'such as 2026-10, in UTC')
    .option('--rate <yuan>', "yuan for one unit of the invoice's currency", parseDecimalText, '1')
    .option('--model-column <name>', 'of the file (default: found by its name)')
    .option('--amount-column <name>', 'of the file (default: found by its name)')
    .addOption(
      new Option('--decimal <mark>', 'what stands before decimals (default: as the amounts show it)').choices(
        Object.keys(decimalMarks),
      ),
    )
    .action(
      onTables(
        async ({ ports, terminal }, ...[channel, file, options]: [string, string, ReconcileOptions]) => {
          const { decimal, ...asked } = options;
          const text = await readSheetFile(file);
          const delimiter = delimiterOf(text);
          printReconciliation(
            terminal,
            await reconcileChannel(ports, {
              ...asked,
              channel,
              decimal: decimal && decimalMarks[decimal],
              text: { delimiter, lines: csvLines(text, delimiter) },
            }),
          );
        },
      ),
    );
}

const decimalMarks = { dot: '.', comma: ',' } as const;

interface ReconcileOptions extends Omit<ReconcileInput, 'channel' | 'text' | 'decimal'> {
  decimal?: keyof typeof decimalMarks;
}
