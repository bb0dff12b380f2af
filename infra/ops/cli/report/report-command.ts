/** The command `report`: a week or a month at a glance, on the terminal, as JSON, or as one HTML file. */
import type { Command } from 'commander';
import { viewReport } from '../../../../shared/operate/report/report-view.ts';
import { reportPage } from '../../report/report-page.ts';
import type { CommandContext } from '../command/command-context.ts';
import { masked } from '../terminal/terminal.ts';
import { writeTextFile } from '../terminal/text-files.ts';
import { printReport } from './print-report.ts';

interface ReportOptions {
  html?: string;
  month?: string;
  week?: string;
}

const notes = `
Without --month and --week: the seven days that end today. Days are UTC. Figures come from the sums of \`daily\`, so calls
that were refused before anything was reserved are in none of them.`;

export function addReportCommand(program: Command, { onTables }: CommandContext): void {
  program
    .command('report')
    .description(
      'spend, margin, failures, slow channels, accounts near empty and open marks of a week or month',
    )
    .option('--html <file>', 'write it as one HTML file with plots, which loads nothing')
    .option('--month <month>', 'such as 2026-11')
    .option('--week <day>', 'the week, from Monday, that has this day, such as 2026-11-18')
    .addHelpText('after', notes)
    .action(
      onTables(async ({ ports, terminal }, { html, month, week }: ReportOptions) => {
        const view = await viewReport(ports, { month, week });
        if (html !== undefined) await writeTextFile(html, masked(reportPage(view)));
        printReport(terminal, view, html);
      }),
    );
}
