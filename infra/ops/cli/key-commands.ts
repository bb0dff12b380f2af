/** The commands of `key`: API keys of clients. A new key is printed once and stored nowhere. */
import type { Command } from 'commander';
import { checkKey } from '../../../shared/operate/keys/check-key.ts';
import {
  carryOutCreateKey,
  planCreateKey,
  type NewKeyInput,
} from '../../../shared/operate/keys/create-key.ts';
import { planDisableKey } from '../../../shared/operate/keys/disable-key.ts';
import { listKeys } from '../../../shared/operate/keys/list-keys.ts';
import { carryOutRotateKey, planRotateKey } from '../../../shared/operate/keys/rotate-key.ts';
import { carryOutWrites } from '../../../shared/operate/row-writes.ts';
import { approve } from './terminal/approve.ts';
import type { CommandContext } from './command/command-context.ts';
import { printNewAccount } from './print/accounts.ts';
import { printKeyCheck, printKeys, printNewKey } from './print/keys.ts';
import { parseList, parseNumber, type JsonOption } from './terminal/option-values.ts';

const examples = `
A key is shown once, when it is made; the tables hold only its hash.
Commands that take a <key> accept its hash (the first 4 characters or more) or its hint, as \`key list\` shows them.

Examples:
  npm run ops -- key create --account acme
  npm run ops -- key create --account acme --models gpt-4o,gpt-4o-mini --rpm 60 --expires 2027-01-01T00:00:00Z
  npm run ops -- key list --account acme
  echo "$KEY" | npm run ops -- key check
  npm run ops -- key rotate sk-AbCd...wXyZ --grace 48
  npm run ops -- key disable 3f9a1c --stack relay --yes`;

interface RotateOptions extends JsonOption {
  /** Hours. */
  grace: number;
  yes?: boolean;
}

export function addKeyCommands(program: Command, context: CommandContext): void {
  const { terminal, onTables } = context;
  const key = program.command('key').description('API keys of clients').addHelpText('after', examples);

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
    .option('--no-store', 'may store none, whatever the setting store says')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, options: NewKeyInput & JsonOption) => {
        const plan = await planCreateKey(ports, options);
        const key = await carryOutCreateKey(ports, plan);
        printNewAccount(terminal, key.made);
        printNewKey(terminal, { ...plan, ...key }, options);
      }),
    );

  key
    .command('list')
    .description('list keys and what the relay makes of them')
    .option('--account <name>', 'only those of this account')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, options: { account?: string } & JsonOption) =>
        printKeys(terminal, await listKeys(ports, options), options),
      ),
    );

  key
    .command('check')
    .description('say what the relay answers to a key, and why; exit code 0 when it is usable, else 1')
    .argument('[key]', 'the whole key (default: read from standard input, which keeps it out of the history)')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, written: string | undefined, options: JsonOption) => {
        const secretKey = written ?? (await terminal.readInput('Paste the key'));
        printKeyCheck(terminal, await checkKey(ports, secretKey), options);
      }),
    );

  key
    .command('disable')
    .description('refuse a key from now on (within 30 s)')
    .argument('<key>', 'hash or hint')
    .option('--yes', 'do not ask')
    .action(
      onTables(async (ports, written: string, options: { yes?: boolean }) => {
        const plan = await planDisableKey(ports, written);
        await approve(terminal, plan, options);
        await carryOutWrites(ports, plan);
        terminal.print(`${plan.name} is disabled; the relay refuses it within 30 seconds.`);
      }),
    );

  addKeyRotate(key, context);
}

function addKeyRotate(key: Command, { terminal, onTables }: CommandContext): void {
  key
    .command('rotate')
    .description('make a new key with the same rights; the old one expires')
    .argument('<key>', 'hash or hint')
    .option('--grace <hours>', 'how long the old key still works', parseNumber, 24)
    .option('--yes', 'do not ask (it asks only when --grace is 0)')
    .option('--json', 'print JSON')
    .action(
      onTables(async (ports, written: string, options: RotateOptions) => {
        const plan = await planRotateKey(ports, { written, graceHours: options.grace });
        await approve(terminal, plan, options);
        printNewKey(terminal, { ...plan, ...(await carryOutRotateKey(ports, plan)) }, options);
        terminal.remark(`${plan.oldName} works until ${plan.oldWorksUntil}.`);
      }),
    );
}
