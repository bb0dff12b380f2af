/** The command `export`: everything about people and money in one file. */
import { exportLines } from '../../export-lines.ts';
import { defineView } from '../command.ts';
import { parsePast, type Moment } from '../option-values.ts';
import { writeLines } from '../text-files.ts';

export const exportCommand = defineView('export', {
  does: 'export all data as JSON Lines',
  takes: {
    '<file>': 'output file; replaced when the export is complete',
    '--from <time>': ['ledger rows of calls that started at or after this time (default: all)', parsePast],
    '--to <time>': ['ledger rows of calls that started before this time', parsePast],
  },
  notes: `
Exports channels, prices, plans, settings, customers, keys (hash and hint), grants and the ledger, but no secrets, prompts
or answers. Memory use does not grow with the amount of data.`,
  examples: ['export everything.jsonl', 'export november.jsonl --from 2026-11-01 --to 2026-12-01'],
  async run({ ports, terminal }, path: string, { from, to }: { from?: Moment; to?: Moment }) {
    const nowMs = ports.clock.now();
    const counts = new Map<string, number>();
    const lines = exportLines(ports, { fromMs: from?.(nowMs), toMs: to?.(nowMs) }, (page) => {
      const count = (counts.get(page.table) ?? 0) + page.count;
      counts.set(page.table, count);
      page.problems.forEach(terminal.remark);
      terminal.count(`${count} rows of ${page.table}`);
    });
    await writeLines(path, lines);
    terminal.printAs({ file: path, rows: Object.fromEntries(counts) }, () => {
      terminal.printFacts([...counts].map(([table, count]) => [table, String(count)]));
      terminal.print(`Exported to ${path}.`);
    });
  },
});
