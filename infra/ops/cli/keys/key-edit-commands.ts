/** Commands that change what a key may do, and who pays for it. */
import type { Command } from 'commander';
import {
  planEditKey,
  planEnableKey,
  planMoveKey,
  type EditKeyPlan,
} from '../../../../shared/operate/keys/edit-key.ts';
import { usageFailure } from '../../../../shared/operate/operator-failure.ts';
import type { RawRow } from '../../../../shared/operate/row-tables.ts';
import { carryOutWrites } from '../../../../shared/operate/row-writes.ts';
import type { CommandContext, Run } from '../command/command-context.ts';
import { writes } from '../command/writing.ts';
import { parseLimit, parseList } from '../terminal/option-values.ts';

type Limit = number | 'none';

/** Undefined removes the attribute. */
const limitOf = (limit: Limit): number | undefined => (limit === 'none' ? undefined : limit);

const edit = ({ ports }: Run, plan: EditKeyPlan) =>
  writes({
    plan,
    carryOut: () => carryOutWrites(ports, plan),
    print: ({ print }) => print('It is written; live within 30 seconds.'),
    facts: () => ({ key: plan.name, rights: plan.rights }),
  });

const keyMeans = 'hash or hint';

export function addKeyEdits(key: Command, { writing }: CommandContext): void {
  writing(
    key.command('enable').description('let a disabled key work again').argument('<key>', keyMeans),
    async (run, written: string) => edit(run, await planEnableKey(run.ports, written)),
  );

  writing(
    key
      .command('move')
      .description('let another account pay for a key; earlier calls stay where they are')
      .argument('<key>', keyMeans)
      .argument('<account>', 'who pays from now on'),
    async (run, written: string, account: string) =>
      edit(run, await planMoveKey(run.ports, { written, account })),
  );

  writing(
    key
      .command('limits')
      .description('set how many calls a key may make a minute, and at once')
      .argument('<key>', keyMeans)
      .option('--rpm <n>', 'requests a minute, or none', parseLimit)
      .option('--concurrency <n>', 'requests at the same time, or none', parseLimit),
    async (run, written: string, { rpm, concurrency }: { rpm?: Limit; concurrency?: Limit }) => {
      const attributes: RawRow = {
        ...(rpm !== undefined && { rpm: limitOf(rpm) }),
        ...(concurrency !== undefined && { max_concurrency: limitOf(concurrency) }),
      };
      if (Object.keys(attributes).length === 0) throw usageFailure('give --rpm, --concurrency or both');
      return edit(run, await planEditKey(run.ports, written, attributes));
    },
  );

  addKeyScope(key, { writing });
}

function addKeyScope(key: Command, { writing }: Pick<CommandContext, 'writing'>): void {
  writing(
    key
      .command('budget')
      .description("set the most a key may spend of its account's balance a day or a month")
      .argument('<key>', keyMeans)
      .argument('[yuan]', 'such as 20')
      .option('--per <period>', 'day or month', 'month')
      .option('--none', 'no budget'),
    async (
      run,
      ...[written, yuan, options]: [string, string | undefined, { per: string; none?: boolean }]
    ) => {
      if ((options.none === true) === (yuan !== undefined)) throw usageFailure('give either yuan or --none');
      const budget = yuan === undefined ? undefined : { amount: Number(yuan), period: options.per };
      return edit(run, await planEditKey(run.ports, written, { budget }));
    },
  );

  writing(
    key
      .command('models')
      .description('set the only models a key may call')
      .argument('<key>', keyMeans)
      .argument('[a,b]', 'public names', parseList)
      .option('--all', 'every model'),
    async (run, ...[written, models, options]: [string, string[] | undefined, { all?: boolean }]) => {
      if ((options.all === true) === (models !== undefined))
        throw usageFailure('give either models or --all');
      return edit(run, await planEditKey(run.ports, written, { models }));
    },
  );
}
