/** The commands for a key that strangers may have: what it was used for, and what to do about it. */
import type { Command } from 'commander';
import { carryOutLeakedKey, planLeakedKey } from '../../../../shared/operate/keys/leaked-key.ts';
import { findKey } from '../../../../shared/operate/keys/find-key.ts';
import { usageFailure } from '../../../../shared/operate/operator-failure.ts';
import { viewKeyUse } from '../../../../shared/operate/keys/key-use.ts';
import type { CommandContext } from '../command/command-context.ts';
import { listing } from '../command/common-options.ts';
import { writes } from '../command/writing.ts';
import { parseTime } from '../terminal/option-values.ts';
import { countProgress } from '../terminal/progress.ts';
import { printKeyUse } from './print-key-use.ts';
import { leakedFacts, printLeaked, printSuccessor } from './print-leaked.ts';

const rowsRead = 'ledger rows read';
const dayMs = 86_400_000;

export function addLeaked(key: Command, { onTables, writing }: CommandContext): void {
  listing(
    key
      .command('use')
      .description('what a key called and spent since a time, by hour and model')
      .argument('<key>', 'hash or hint')
      .option('--since <time>', 'ISO 8601 (default: a day ago)', parseTime),
  ).action(
    onTables(async ({ ports, terminal }, written: string, { since }: { since?: number }) => {
      const { hash, account } = await findKey(ports, written);
      const sinceMs = since ?? ports.clock.now() - dayMs;
      if (account === '') throw usageFailure('the row of this key has no account, so it called nothing');
      const wanted = { account, hash, sinceMs };
      printKeyUse(terminal, await viewKeyUse(ports, wanted, countProgress(terminal, rowsRead)));
    }),
  );

  writing(
    key
      .command('leaked')
      .description(
        'refuse a key at once, make its successor, say what it was used for, what to tell the customer, what to refund',
      )
      .argument('<key>', 'hash or hint')
      .option('--since <time>', 'its use from then on is shown: ISO 8601 (default: a day ago)', parseTime)
      .option('--no-successor', 'make no new key'),
    async ({ ports, terminal }, written: string, options: { since?: number; successor: boolean }) => {
      const plan = await planLeakedKey(ports, {
        written,
        sinceMs: options.since,
        alone: !options.successor,
      });
      const progress = countProgress(terminal, rowsRead);
      const known = plan.earlier && {
        successor: undefined,
        use: await viewKeyUse(ports, plan.use, progress),
      };
      return writes({
        plan,
        preview: (shown) => {
          if (known && shown.format === 'text') printLeaked(shown, plan, known);
        },
        carryOut: () =>
          carryOutLeakedKey(ports, plan, {
            onProgress: progress,
            onMade: (key) => {
              if (terminal.format === 'text') printSuccessor(terminal, key);
            },
          }),
        print: (shown, made) => printLeaked(shown, plan, made),
        facts: (made) => leakedFacts(terminal, plan, made ?? known),
      });
    },
  );
}
