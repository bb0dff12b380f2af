/** The command `export`: everything about people and money in one file. */
import { exportLines } from '../../export-lines.ts';
import { shows } from '../command.ts';
import { parsePast, type Moment } from '../option-values.ts';
import { writeLines } from '../text-files.ts';

export const exportCommand = shows('export', {
  does: 'write everything about people and money to one file: a JSON object a line, with its table and its row',
  takes: {
    '<file>': 'the file, which is written over once all is there',
    '--from <time>': ['of the ledger, what began from then on (default: all)', parsePast],
    '--to <time>': ['of the ledger, what began until then', parsePast],
  },
  notes: `
Channels, prices, plans, settings, customers, keys (hash and hint), grants and the ledger: no secret, no prompt, no answer.
Memory stays small, whatever the size.`,
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
      terminal.print(`written: ${path}`);
    });
  },
});
