/** The command `restore`: walks a restore of the money to one second, or a drill of it. Each step is shown and asked about first. */
import { InvalidArgumentError } from 'commander';
import { copyStack, restoreSteps } from '../../../../shared/operate/restore/restore.ts';
import { Failure } from '../../../../shared/operate/plan.ts';
import type { TableName } from '../../../../shared/tables/table-names.ts';
import { approve, defineView, type ApproveOptions } from '../command.ts';
import { parseList, parseNumber, parsePast, type Moment } from '../option-values.ts';

const optional = ['keys', 'accounts', 'codes'] as const;

interface RestoreOptions extends ApproveOptions {
  to: Moment;
  also?: TableName[];
  drill?: boolean;
  forgive?: boolean;
  accept?: string[];
  /** Seconds. */
  wait: number;
}

function parseTables(written: string): TableName[] {
  const names = parseList(written);
  if (!names.every((name) => optional.some((known) => known === name)))
    throw new InvalidArgumentError(`Expected ${optional.join(',')}, or one of them.`);
  return names as TableName[];
}

export const restoreCommand = defineView('restore', {
  does: 'restore balances and ledger to any second of the last 35 days; safe to repeat after an interruption',
  needs: { '--to <time>': ['point in time to restore to', parsePast] },
  takes: {
    '--drill': 'only test the restore: create copies, compare them, delete them',
    '--also <a,b>': ['also restore deleted rows of keys, accounts or codes', parseTables],
    '--forgive': 'refund calls that ended after this time',
    '--accept <a,b>': [
      'accept charges without a ledger row in these accounts; they stay unchanged',
      parseList,
    ],
    '--wait <seconds>': ['how long to wait until no call is in flight', parseNumber, 1200],
    '--dry-run': 'show the first steps and write nothing',
    '--yes': 'skip confirmation',
  },
  examples: [
    'restore --to 2026-11-20T12:00:00Z --drill',
    'restore --to 2026-11-20T12:00:00Z',
    'restore --to 2026-11-20T12:00:00Z --also keys,accounts --forgive',
  ],
  policies: ['restore'],
  async run(
    { ports, terminal },
    { to, also: others = [], drill = false, forgive = false, ...options }: RestoreOptions,
  ) {
    const atMs = Math.floor(to(ports.clock.now()) / 1000) * 1000;
    const copy = copyStack(ports.target.stack, atMs);
    const { accept: accepted = [], wait } = options;
    const input = { atMs, copy, others, forgive, accepted, waitMs: wait * 1000 };
    const reportWait = (what: string): void => terminal.count(`waiting for ${what}`);
    const steps: { step: string; effect: string[]; said: string[] }[] = [];
    let off = false;
    for (const step of await restoreSteps({ ports, input, waiting: reportWait }, drill)) {
      const { name } = step;
      const { plan, carryOut } = await step.prepare();
      const effect = plan.effect.length > 0 ? plan.effect : ['nothing to do'];
      if (plan.refusal === undefined) effect.forEach((each) => terminal.print(`${name}: ${each}`));
      terminal.warn(plan.warnings ?? []);
      const done = await approve(terminal, plan, options);
      const { said, isOff } = done ? await carryOut() : { said: [], isOff: false };
      said.forEach((each) => terminal.print(`${name}: ${each}`));
      steps.push({ step: name, effect, said });
      off = isOff;
      // The next steps can be planned only when the copies exist.
      if (off || (options.dryRun && name === 'copies' && plan.changes.length > 0)) break;
    }
    if (terminal.format === 'json') terminal.printJson({ done: !options.dryRun && !off, steps });
    if (off)
      throw new Failure(
        'stopped by the findings above: fix them and re-run, or re-run with --accept ACCOUNT for charges without a ledger row. The copies are kept, and a closed relay stays closed.',
      );
  },
});
