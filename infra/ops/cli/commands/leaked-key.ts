/** The commands for a key that strangers may have: what it was used for, and what to do about it. */
import type { Command } from 'commander';
import {
  carryOutLeakedKey,
  planLeakedKey,
  viewKeyUse,
  type LeakedKeyMade,
  type LeakedKeyPlan,
  leakedMessage,
  leakedRefund,
  refundCommand,
  type KeyUse,
} from '../../../../shared/operate/keys/leaked-key.ts';
import { findKey } from '../../../../shared/operate/keys/list-keys.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { type CommandContext, listing, writes, countProgress } from '../command.ts';
import { parseTime } from '../option-values.ts';
import { formatYuan } from '../../../../shared/billing/amount.ts';
import type { MadeKey } from '../../../../shared/operate/keys/edit-key.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import type { Terminal } from '../terminal.ts';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';

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

// Prints what follows from a leak. The successor is shown once, here alone.

/** At once: what is read afterwards may take long, or fail. */
function printSuccessor({ print, reveal }: Terminal, { secretKey }: MadeKey): void {
  reveal(secretKey);
  print(`The successor is made: ${secretKey}`);
}

function printLeaked(
  terminal: Terminal,
  plan: LeakedKeyPlan,
  { successor, use, problem }: LeakedKeyMade,
): void {
  const { print, remark } = terminal;
  const refused = plan.earlier ? 'was refused before' : 'is refused within 30 seconds';
  print(`${plan.name} ${refused}. Its use since ${isoTime(plan.use.sinceMs)}:`);
  if (use) printKeyUse(terminal, use);
  else remark(`it could not be read: ${problem}. Ask again: key leaked ${plan.use.hash.slice(0, 12)}`);
  if (!plan.earlier)
    remark(
      `Calls that still run, and those of the next 30 seconds, are not in it: look again before you refund (key use ${plan.use.hash.slice(0, 12)}).`,
    );
  print('');
  const once = successor ? '; the new key is stored nowhere and is not shown again' : '';
  print(`Send this to the customer${once}:`);
  print('');
  for (const line of leakedMessage({ plan, secretKey: successor?.secretKey, use }))
    print(line === '' ? '' : `  ${line}`);
  print('');
  const refund = leakedRefund({ plan, use });
  if (use && use.refunded > 0n) print(`${formatYuan(use.refunded)} yuan of it were refunded already.`);
  if (refund !== undefined) print(`To give back what it spent (choose the amount): ${refundCommand(refund)}`);
}

/** @param made undefined: nothing was done */
function leakedFacts({ reveal }: Terminal, plan: LeakedKeyPlan, made: LeakedKeyMade | undefined): object {
  const facts = { account: plan.account, leaked: plan.name };
  if (!made) return facts;
  const { successor, use, problem } = made;
  if (successor) reveal(successor.secretKey);
  const refund = leakedRefund({ plan, use });
  return {
    ...facts,
    since: isoTime(plan.use.sinceMs),
    ...(use && {
      sum: figuresJson(use.sum),
      refunded: formatYuan(use.refunded),
      hours: hoursJson(use),
    }),
    ...(problem !== undefined && { problem }),
    ...(plan.earlier && { leaked_at: plan.earlier.at, successor: plan.earlier.successor ?? null }),
    ...(successor && { key: successor.secretKey, hash: successor.hash, hint: successor.hint }),
    message: leakedMessage({ plan, secretKey: successor?.secretKey, use }).join('\n'),
    refund: refund ? refundCommand(refund) : null,
  };
}

// Prints what a key was used for, by hour and model.

const figuresJson = ({ counts, amounts }: DailyFigures) => ({
  calls: counts.calls ?? 0,
  failures: counts.failures ?? 0,
  prompt_tokens: counts.prompt_tokens ?? 0,
  completion_tokens: counts.completion_tokens ?? 0,
  charged: formatYuan(amounts.charged ?? 0n),
});

const hoursJson = ({ hours }: KeyUse) =>
  hours.map(({ hour, model, figures }) => ({ hour, model, ...figuresJson(figures) }));

const columns = ['hour', 'model', 'calls', 'failures', 'prompt_tokens', 'completion_tokens', 'charged'];

function printKeyUse(terminal: Terminal, use: KeyUse): void {
  const rows = hoursJson(use);
  terminal.printList({
    columns,
    rows,
    table: () => [
      ['HOUR', 'MODEL', 'CALLS', 'FAILED', 'INPUT', 'OUTPUT', 'CHARGED'],
      ...rows.map((row) => [
        row.hour,
        row.model,
        String(row.calls),
        String(row.failures),
        String(row.prompt_tokens),
        String(row.completion_tokens),
        row.charged,
      ]),
    ],
    empty: `it called nothing since ${isoTime(use.sinceMs)}`,
  });
  use.problems.forEach(terminal.remark);
  const { calls, charged } = figuresJson(use.sum);
  if (terminal.format === 'text' && calls > 0) terminal.print(`${calls} calls, ${charged} yuan in all.`);
}
