/** The command `restore`: walks a restore of the money to one second, or a drill of it. Each step is shown and asked about first. */
import { InvalidArgumentError } from 'commander';
import { copyStack, restoreSteps } from '../../../../shared/operate/restore/restore.ts';
import { Failure } from '../../../../shared/operate/plan.ts';
import type { TableName } from '../../../../shared/tables/table-names.ts';
import { approve, shows, type ApproveOptions } from '../command.ts';
import { parseList, parseNumber, parsePast, type Moment } from '../option-values.ts';

const optional = ['keys', 'accounts'] as const;

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
    throw new InvalidArgumentError(`Wanted ${optional.join(',')}, or one of them.`);
  return names as TableName[];
}

export const restoreCommand = shows('restore', {
  does: 'put the money back as its rows and a second of the last 35 days have it; repeated, it goes on where it ended',
  needs: { '--to <time>': ['the second that tables are restored to, beside', parsePast] },
  takes: {
    '--drill': 'restore beside, compare, delete the copies; nothing else is touched',
    '--also <a,b>': ['rows of keys or accounts that are gone come back, too', parseTables],
    '--forgive': 'grant what calls that ended after that second were charged',
    '--accept <a,b>': [
      'accounts that were charged what no row says any more, and are to be left so',
      parseList,
    ],
    '--wait <seconds>': ['how long to wait until the relay is quiet', parseNumber, 1200],
    '--dry-run': 'show the first steps that would do something, and write nothing',
    '--yes': 'do not ask',
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
    const waiting = (what: string): void => terminal.count(`waiting for ${what}`);
    const steps: { step: string; effect: string[]; said: string[] }[] = [];
    let off = false;
    for (const step of await restoreSteps({ ports, input, waiting }, drill)) {
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
      // What follows can be planned only once the copies are there.
      if (off || (options.dryRun && name === 'copies' && plan.changes.length > 0)) break;
    }
    if (terminal.format === 'json') terminal.printJson({ done: !options.dryRun && !off, steps });
    if (off)
      throw new Failure(
        'what is said above stands in the way: mend it and repeat, or, of a charge whose row is nowhere, repeat with --accept ACCOUNT; the copies stay, and so does a closed relay',
      );
  },
});
