/** The commands of `key`: API keys of clients. A new key is printed once and stored nowhere. */
import type { Command } from 'commander';
import { checkKey, listKeys } from '../../../../shared/operate/keys/list-keys.ts';
import {
  carryOutCreateKey,
  planCreateKey,
  type NewKeyInput,
  planDisableKey,
  carryOutRotateKey,
  planRotateKey,
  planEditKey,
  planEnableKey,
  planMoveKey,
  type EditKeyPlan,
} from '../../../../shared/operate/keys/edit-key.ts';
import { carryOutWrites } from '../../../../shared/operate/rows.ts';
import { type CommandContext, writes, listing, type Run } from '../command.ts';
import { newKeyFacts, printKeyCheck, printKeys, printNewKey } from '../print-keys.ts';
import { addLeaked } from './leaked-key.ts';
import { parseHours, parseList, parseNumber, parseLimit } from '../option-values.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';

export function addKeyCommands(program: Command, context: CommandContext): void {
  const { onTables } = context;
  const key = program
    .command('key')
    .description('API keys of clients')
    .addHelpText(
      'after',
      '\nA key is shown once, when it is made; the tables hold only its hash.\nCommands that take a <key> accept its hash (the first 4 characters or more) or its hint, as `key list` shows them.',
    );

  addKeyCreate(key, context);

  listing(key.command('list').description('list keys and what the relay makes of them'))
    .option('--account <name>', 'only those of this account')
    .action(
      onTables(async ({ ports, terminal }, options: { account?: string }) =>
        printKeys(terminal, await listKeys(ports, options)),
      ),
    );

  key
    .command('check')
    .description('say what the relay answers to a key, and why; exit code 0 when it is usable, else 1')
    .argument('[key]', 'the whole key (default: read from standard input, which keeps it out of the history)')
    .action(
      onTables(async ({ ports, terminal }, written: string | undefined) => {
        const secretKey = written ?? (await terminal.readInput('Paste the key'));
        printKeyCheck(terminal, await checkKey(ports, secretKey));
      }),
    );

  addKeyEnds(key, context);
  addKeyEdits(key, context);
  addLeaked(key, context);
}

function addKeyCreate(key: Command, { writing }: CommandContext): void {
  writing(
    key
      .command('create')
      .description('make a key for an account, and the account if there is none')
      .requiredOption('--account <name>', 'who pays')
      .option('--models <a,b>', 'the only models it may call (default: every model)', parseList)
      .option('--official', 'may call in official mode, which deducts nothing')
      .option('--expires <time>', 'ISO 8601, such as 2027-01-01T00:00:00Z (default: never)')
      .option('--max-concurrency <n>', 'requests at the same time', parseNumber)
      .option('--rpm <n>', 'requests a minute', parseNumber)
      .option('--store', 'may store responses, whatever the setting store says')
      .option('--no-store', 'may store none, whatever the setting store says'),
    async ({ ports, terminal }, options: NewKeyInput) => {
      const plan = await planCreateKey(ports, options);
      return writes({
        plan,
        carryOut: () => carryOutCreateKey(ports, plan),
        print: (terminal, made) => printNewKey(terminal, { ...plan, ...made }),
        facts: (made) => newKeyFacts(terminal, plan, made),
      });
    },
  );
}

function addKeyEnds(key: Command, { writing }: CommandContext): void {
  writing(
    key
      .command('disable')
      .description('refuse a key from now on (within 30 s)')
      .argument('<key>', 'hash or hint'),
    async ({ ports }, written: string) => {
      const plan = await planDisableKey(ports, written);
      return writes({
        plan,
        carryOut: () => carryOutWrites(ports, plan),
        print: ({ print }) => print(`${plan.name} is disabled; the relay refuses it within 30 seconds.`),
        facts: () => ({ key: plan.name }),
      });
    },
  );

  writing(
    key
      .command('rotate')
      .description('make a new key with the same rights; the old one expires')
      .argument('<key>', 'hash or hint')
      .option('--grace <time>', 'how long the old key still works, such as 48h or 7d', parseHours, 24),
    async ({ ports, terminal }, written: string, { grace }: { grace: number }) => {
      const plan = await planRotateKey(ports, { written, graceHours: grace });
      return writes({
        plan,
        carryOut: () => carryOutRotateKey(ports, plan),
        print(terminal, made) {
          printNewKey(terminal, { ...plan, ...made });
          terminal.remark(`${plan.oldName} works until ${plan.oldWorksUntil}.`);
        },
        facts: (made) => ({
          ...newKeyFacts(terminal, plan, made),
          old: plan.oldName,
          old_works_until: plan.oldWorksUntil,
        }),
      });
    },
  );
}

// Commands that change what a key may do, and who pays for it.

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

function addKeyEdits(key: Command, { writing }: CommandContext): void {
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
