/** The commands of `key`: API keys of clients: made, listed, checked, limited, ended, and what follows from a leak. A new key is shown once. */
import { maskHash } from '../../../../shared/config/rows/key-row.ts';
import { formatYuan } from '../../../../shared/billing/money.ts';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import {
  checkKey,
  findKey,
  keyViewsOf,
  listKeys,
  type KeyCheck,
  type KeyView,
} from '../../../../shared/operate/keys/list-keys.ts';
import {
  carryOutKey,
  planCreateKey,
  planDisableKey,
  planEditKey,
  planEnableKey,
  planRotateKey,
  writeRotationMessage,
  type MadeKey,
  type NewKeyPlan,
  type EditKeyPlan,
} from '../../../../shared/operate/keys/edit-key.ts';
import {
  viewKeyUse,
  carryOutLeakedKey,
  planLeakedKey,
  writeLeakMessage,
  planLeakRefund,
  refundCommand,
  type KeyUse,
  type LeakedKeyMade,
  type LeakedKeyPlan,
} from '../../../../shared/operate/keys/leaked-key.ts';
import { formatCount, Failure, formatMoney, usageFailure } from '../../../../shared/operate/plan.ts';
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import { isoTime, dayMs } from '../../../../shared/wire/iso-time.ts';
import { existingKeyFields, keyFields } from '../../fields/key-fields.ts';
import { keySheet } from '../../fields/sheet.ts';
import {
  defineChange,
  defineRows,
  defineView,
  defineWrite,
  type CommandGroup,
  type CommandDescription,
  type CommandRun,
} from '../command.ts';
import { parseHours, parsePast, type Moment } from '../option-values.ts';
import { formatText, nestColumns, nameValues, type Column, type Terminal } from '../terminal.ts';
import { defineApply, defineExport } from './sheets.ts';
import { formatHelp, parseAttributes, attributesAbout } from './rows.ts';
import { textIn } from '../../../../shared/wire/json.ts';

const keyArgument = { '<key>': 'hash or hint from `key list`' };

interface KeyEdit<Words extends unknown[]> extends Omit<CommandDescription, 'needs'> {
  edit: (ports: OperatorPorts, written: string, ...words: Words) => Promise<EditKeyPlan>;
}

/** A command that changes attributes of a key's row. */
const defineEditCommand = <Words extends unknown[]>(
  name: string,
  { edit, takes, ...parts }: KeyEdit<Words>,
) =>
  defineChange(name, {
    ...parts,
    takes: { ...keyArgument, ...takes },
    async plan(run, written: string, ...words: Words) {
      const plan = await edit(run.ports, written, ...words);
      const facts = { key: plan.name, rights: plan.rights };
      return defineRows(run, plan, { message: 'Saved; live within 30 s.', facts });
    },
  });

type Figures = Pick<DailyFigures, 'counts' | 'amounts'>;

export const figureColumns: Column<Figures>[] = [
  ['calls', 'CALLS', ({ counts }) => counts.calls ?? 0],
  ['failures', 'FAILED', ({ counts }) => counts.failures ?? 0],
  ['prompt_tokens', 'INPUT', ({ counts }) => counts.prompt_tokens ?? 0],
  ['completion_tokens', 'OUTPUT', ({ counts }) => counts.completion_tokens ?? 0],
  ['charged', 'CHARGED', ({ amounts }) => formatYuan(amounts.charged ?? 0n)],
];

export const keyCommands: CommandGroup = {
  name: 'key',
  does: 'manage API keys',
  notes:
    '\nA key is shown once, when it is created; the relay stores only its hash. <key> is the hint from `key list`, or at least\n4 characters of the hash.',
  commands: [
    defineChange('new', {
      does: 'create a key; creates the customer if it does not exist',
      takes: { '<account>': 'customer who pays for its calls', '[attributes...]': attributesAbout },
      notes: formatHelp(keyFields),
      examples: [
        'key new acme',
        'key new acme models=gpt-4o,gpt-4o-mini rpm=60 expires_at=2027-01-01 "name=batch job"',
      ],
      async plan({ ports, terminal }, account: string, written: string[]) {
        const attributes = written.length === 0 ? {} : parseAttributes(written, keyFields);
        const plan = await planCreateKey(ports, { account, attributes });
        return defineWrite({
          plan,
          carryOut: () => terminal.revealMade(carryOutKey(ports, plan)),
          print: (shown, made) => printNewKey(shown, { ...plan, ...made }),
          facts: (made) => formatNewKey(plan, made),
        });
      },
    }),
    defineView('list', {
      does: 'list keys and whether they work',
      lists: true,
      takes: { '--account <name>': 'only this customer' },
      examples: ['key list --account acme', 'key list --csv'],
      async run({ ports, terminal }, options: { account?: string }) {
        terminal.printList(await listKeys(ports, options), {
          columns: keyColumns,
          json: formatKeyJson,
          empty: 'No keys. Create one with `npx --no relay-ops key new <account>`.',
        });
      },
    }),
    defineView('check', {
      does: 'check whether a key works, and why not; exits 1 if it does not',
      takes: {
        '[key]': 'the full key (default: read from standard input, to keep it out of the shell history)',
      },
      examples: ['echo "$KEY" | key check'],
      async run({ ports, terminal }, written: string | undefined) {
        const secretKey = written ?? (await terminal.readInput('Paste the key'));
        const { state, why, name } = await checkKey(ports, secretKey);
        if (terminal.format === 'json') terminal.printJson({ state, why });
        if (state !== 'usable')
          throw new Failure(`${name ?? 'this key'} is ${stateWords[state] ?? state}: ${why}
The relay rejects it with 401 invalid_api_key.`);
        if (terminal.format === 'text') terminal.print(`${name} works: ${why}`);
      },
    }),
    defineView('show', {
      does: 'show all attributes of a key and whether it works',
      takes: keyArgument,
      examples: ['key show 3f9a1c', 'key show sk-AbCd...wXyZ --json'],
      async run({ ports, terminal }, written: string) {
        const { row } = await findKey(ports, written);
        const [key] = keyViewsOf([row], ports.clock.now());
        if (!key) return;
        const { row: kept, ...values } = formatKeyJson(key);
        terminal.printAs({ ...values, row: kept }, () =>
          terminal.printFacts(
            Object.entries({ ...values, ...kept }).map(([name, value]) => [name, formatText(value)]),
          ),
        );
      },
    }),
    defineEditCommand('set', {
      does: "change a key's customer, name, models, limits, budget or expiry",
      takes: { '<attributes...>': attributesAbout },
      notes: formatHelp(existingKeyFields),
      examples: [
        'key set 3f9a1c rpm=60 max_concurrency=5 budget.amount=20 budget.period=month',
        'key set 3f9a1c models=gpt-4o,gpt-4o-mini rpm=',
        'key set 3f9a1c account=other',
      ],
      async edit(ports, written, words: string[]) {
        const { hash, row } = await findKey(ports, written);
        return planEditKey(ports, hash, parseAttributes(words, existingKeyFields, row));
      },
    }),
    defineChange('off', {
      does: 'disable a key (within 30 s)',
      takes: keyArgument,
      examples: ['key off 3f9a1c --stack relay --yes'],
      async plan(run, written: string) {
        const plan = await planDisableKey(run.ports, written);
        const message = `Disabled ${plan.name}; rejected within 30 s.`;
        return defineRows(run, plan, { message, facts: { key: plan.name } });
      },
    }),
    defineEditCommand('on', {
      does: 'enable a disabled key',
      examples: ['key on 3f9a1c'],
      edit: planEnableKey,
    }),
    defineChange('rotate', {
      does: 'replace a key with a new one with the same rights; the old key expires',
      takes: {
        ...keyArgument,
        '--grace <time>': ['how long the old key keeps working, such as 48h or 7d', parseHours, 24],
      },
      examples: ['key rotate sk-AbCd...wXyZ --grace 7d'],
      async plan({ ports, terminal }, written: string, { grace }: { grace: number }) {
        const plan = await planRotateKey(ports, { written, graceHours: grace });
        return defineWrite({
          plan,
          carryOut: () => terminal.revealMade(carryOutKey(ports, plan)),
          print(shown, made) {
            shown.print(
              `${plan.oldName} expires at ${plan.oldWorksUntil}. Send this message now; the new key can't be shown again:`,
            );
            shown.printMessage(writeRotationMessage(plan, made.secretKey));
          },
          facts: (made) => ({
            ...formatNewKey(plan, made),
            old: plan.oldName,
            old_works_until: plan.oldWorksUntil,
            ...(made && { message: writeRotationMessage(plan, made.secretKey).join('\n') }),
          }),
        });
      },
    }),
    defineView('use', {
      does: 'show the calls and spend of a key by hour and model',
      lists: true,
      takes: {
        ...keyArgument,
        '--since <time>': ['start time, such as 2h or yesterday (default: 1d)', parsePast],
      },
      examples: ['key use 3f9a1c --since 2026-11-20', 'key use 3f9a1c --csv'],
      async run({ ports, terminal }, written: string, { since }: { since?: Moment }) {
        const { hash, account } = await findKey(ports, written);
        const nowMs = ports.clock.now();
        const sinceMs = since?.(nowMs) ?? nowMs - dayMs;
        if (account === '') throw usageFailure('this key has no customer, so it has no calls');
        const wanted = { account, hash, sinceMs };
        printKeyUse(terminal, await viewKeyUse(ports, wanted));
      },
    }),
    defineChange('leaked', {
      does: 'handle a leaked key: disables it, creates a replacement, and shows its usage, a message to send and a refund',
      takes: {
        ...keyArgument,
        '--since <time>': ['show its usage since this time (default: 1d)', parsePast],
        '--no-successor': 'do not create a replacement',
      },
      examples: ['key leaked 3f9a1c --since 2026-11-20T09:00:00Z'],
      plan: planLeaked,
    }),
    defineExport('key', keySheet),
    defineApply('key', keySheet),
  ],
};

async function planLeaked(
  { ports, terminal }: CommandRun,
  written: string,
  { since, successor }: { since?: Moment; successor: boolean },
) {
  const plan = await planLeakedKey(ports, {
    written,
    sinceMs: since?.(ports.clock.now()),
    alone: !successor,
  });
  const isText = terminal.format === 'text';
  const known = plan.earlier && {
    successor: undefined,
    use: await viewKeyUse(ports, plan.use),
  };
  return defineWrite({
    plan,
    preview: (shown) => known && isText && printLeaked(shown, plan, known),
    carryOut: () =>
      // At once: what is read afterwards may take long, or fail.
      carryOutLeakedKey(ports, plan, ({ secretKey }) => {
        terminal.reveal(secretKey);
        if (isText) terminal.print(`Created the replacement: ${secretKey}`);
      }),
    print: (shown, made) => printLeaked(shown, plan, made),
    facts: (made) => describeLeak(plan, made ?? known),
  });
}

const shownHashCharacters = 12;
const hintCharacters = 'sk-AbCd...wXyZ'.length;

export function printNewKey(
  { print }: Terminal,
  { secretKey, account, rights }: MadeKey & Pick<NewKeyPlan, 'account' | 'rights'>,
): void {
  print(`\n  ${secretKey}\n`);
  print("Save this key now; it can't be shown again.");
  print(`Customer ${account}; ${rights}. The key works within 5 s.`);
}

export const formatNewKey = (
  { account, rights }: Pick<NewKeyPlan, 'account' | 'rights'>,
  made: MadeKey | undefined,
): object => ({
  account,
  rights,
  ...(made && { key: made.secretKey, hash: made.hash, hint: made.hint }),
});

const keyColumns: Column<KeyView>[] = [
  ['', 'HINT', ({ row }) => hintText(row['hint'])],
  [
    'hash',
    'HASH',
    ({ row, state }) => (state === 'invalid' ? hashText(row['hash']) : row['hash']),
    ({ row }) => shortenHash(row['hash']),
  ],
  ['hint', '', ({ row, state }) => (state === 'invalid' ? hintText(row['hint']) : row['hint'])],
  ['account', 'ACCOUNT', ({ row }) => row['account'], ({ row }) => textIn(row['account'])],
  ['state', 'STATE', ({ state }) => state],
  ['why', 'WHY', ({ why }) => why],
];

/** A row that cannot be read may hold a secret anywhere, also as its hash: no attribute of it is shown that is not known. */
function formatKeyJson(key: KeyView): Record<string, unknown> & { row?: object } {
  const values = nameValues(keyColumns, key);
  if (key.state === 'invalid') return values;
  const kept = Object.entries(key.row).filter(([name]) => !name.startsWith('_') || marks.has(name));
  return { ...values, row: Object.fromEntries(kept) };
}

/** The notes that this tool and the relay write. */
const marks = new Set(['_created', '_replaces', '_sheet_id', '_by', '_at', '_problem', '_warning']);

/** Anything longer than a hint is none. */
export const hintText = (hint: unknown): string => textIn(hint).slice(0, hintCharacters) || '-';
export const hashText = (hash: unknown): string => maskHash(textIn(hash));
export const shortenHash = (hash: unknown): string => hashText(hash).slice(0, shownHashCharacters);

const stateWords: Partial<Record<KeyCheck['state'], string>> = {
  kind: 'of the wrong kind',
  account_off: 'disabled with its customer',
};

const hourColumns: Column<KeyUse['hours'][number]>[] = [
  ['hour', 'HOUR', ({ hour }) => hour],
  ['model', 'MODEL', ({ model }) => model],
  ...nestColumns(({ figures }: KeyUse['hours'][number]) => figures, figureColumns),
];

function printKeyUse(terminal: Terminal, { hours, sum, sinceMs, problems }: KeyUse): void {
  terminal.printList(hours, { columns: hourColumns, empty: `No calls since ${isoTime(sinceMs)}.` });
  problems.forEach(terminal.remark);
  const calls = sum.counts.calls ?? 0;
  if (terminal.format === 'text' && calls > 0)
    terminal.print(`Total: ${formatCount(calls, 'call')}, ${formatMoney(sum.amounts.charged ?? 0n)}`);
}

function printLeaked(
  terminal: Terminal,
  plan: LeakedKeyPlan,
  { successor, use, problem }: LeakedKeyMade,
): void {
  const { print, printMessage, remark } = terminal;
  const hash = plan.use.hash.slice(0, 12);
  const refused = plan.earlier ? 'was already disabled' : 'is disabled within 30 s';
  print(`${plan.name} ${refused}. Usage since ${isoTime(plan.use.sinceMs)}:`);
  if (use) printKeyUse(terminal, use);
  else remark(`Its usage could not be read: ${problem}. Try again: key leaked ${hash}`);
  if (!plan.earlier)
    remark(
      `Calls in flight and those of the next 30 s are not included: check again before you refund (key use ${hash}).`,
    );
  const once = successor ? " now; the new key can't be shown again" : '';
  print(`\nSend this message to the customer${once}:`);
  printMessage(writeLeakMessage({ plan, secretKey: successor?.secretKey, use }));
  const refund = planLeakRefund({ plan, use });
  if (use && use.refunded > 0n) print(`Already refunded: ${formatMoney(use.refunded)}`);
  if (refund !== undefined) print(`To refund its spend (adjust the amount): ${refundCommand(refund)}`);
}

function describeLeak(plan: LeakedKeyPlan, made: LeakedKeyMade | undefined): object {
  const facts = { account: plan.account, leaked: plan.name };
  if (!made) return facts;
  const { successor, use, problem } = made;
  const refund = planLeakRefund({ plan, use });
  return {
    ...facts,
    since: isoTime(plan.use.sinceMs),
    ...(use && {
      sum: nameValues(figureColumns, use.sum),
      refunded: formatYuan(use.refunded),
      hours: use.hours.map((hour) => nameValues(hourColumns, hour)),
    }),
    ...(problem !== undefined && { problem }),
    ...(plan.earlier && { leaked_at: plan.earlier.at, successor: plan.earlier.successor ?? null }),
    ...(successor && { key: successor.secretKey, hash: successor.hash, hint: successor.hint }),
    message: writeLeakMessage({ plan, secretKey: successor?.secretKey, use }).join('\n'),
    refund: refund ? refundCommand(refund) : null,
  };
}
