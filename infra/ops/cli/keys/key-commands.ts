/** The commands of `key`: API keys of clients. A new key is printed once and stored nowhere. */
import type { Command } from 'commander';
import { checkKey } from '../../../../shared/operate/keys/check-key.ts';
import {
  carryOutCreateKey,
  planCreateKey,
  type NewKeyInput,
} from '../../../../shared/operate/keys/create-key.ts';
import { planDisableKey } from '../../../../shared/operate/keys/disable-key.ts';
import { listKeys } from '../../../../shared/operate/keys/list-keys.ts';
import { carryOutRotateKey, planRotateKey } from '../../../../shared/operate/keys/rotate-key.ts';
import { carryOutWrites } from '../../../../shared/operate/row-writes.ts';
import type { CommandContext } from '../command/command-context.ts';
import { writes } from '../command/writing.ts';
import { listing } from '../command/common-options.ts';
import { newKeyFacts, printKeyCheck, printKeys, printNewKey } from '../print/keys.ts';
import { addKeyEdits } from './key-edit-commands.ts';
import { addLeaked } from './leaked-command.ts';
import { parseHours, parseList, parseNumber } from '../terminal/option-values.ts';

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
