/** What every command does that writes rows of the configuration: shows the difference, writes, waits until it is published. */
import type { Command } from 'commander';
import type { ConfigPlan } from '../../../../shared/operate/config/apply-rows.ts';
import { awaitPublished } from '../../../../shared/operate/config/write-rows.ts';
import type { PublishedVersion } from '../../../../shared/operate/config-versions.ts';
import type { RowWrite } from '../../../../shared/operate/row-tables.ts';
import { carryOutWrites } from '../../../../shared/operate/row-writes.ts';
import type { Run } from '../command/command-context.ts';
import type { Writing } from '../command/writing.ts';
import { printConfigPlan, printPublished } from '../print/config.ts';
import { parseNumber } from '../terminal/option-values.ts';
import { countProgress } from '../terminal/progress.ts';

/** Seconds. */
export interface WaitOption {
  wait: number;
}

export const waiting = (command: Command): Command =>
  command.option('--wait <seconds>', 'how long to wait until it is published', parseNumber, 30);

export const configWriting = (
  { ports, terminal }: Run,
  plan: ConfigPlan,
  { wait }: WaitOption,
): Writing<{ written: RowWrite[]; version: PublishedVersion | undefined }> => ({
  plan,
  preview: (shown) => printConfigPlan(shown, plan),
  async carryOut() {
    const written = await carryOutWrites(ports, plan, countProgress(terminal, 'rows written'));
    return { written, version: await awaitPublished(ports, wait) };
  },
  print(shown, { written, version }) {
    shown.print(`${written.length} rows are written.`);
    printPublished(shown, version);
  },
  facts: (made) => ({
    differences: plan.differences,
    ...(made && { rows: made.written.length, version: made.version?.version ?? null }),
  }),
});
