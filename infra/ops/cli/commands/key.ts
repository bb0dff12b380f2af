/** The commands of `key`: API keys of clients: made, listed, checked, limited, ended, and what follows from a leak. A new key is shown once. */
import { maskHash } from '../../../../shared/config/rows/key-row.ts';
import { formatYuan } from '../../../../shared/billing/price.ts';
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
import { formatCount, Failure, usageFailure } from '../../../../shared/operate/plan.ts';
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import { isoTime, dayMs } from '../../../../shared/wire/iso-time.ts';
import { heldKeyFields, keyFields } from '../../fields/key-fields.ts';
import { keySheet } from '../../fields/sheet.ts';
import {
  changes,
  rowWrites,
  shows,
  writes,
  type CommandGroup,
  type CommandParts,
  type CommandRun,
} from '../command.ts';
import { parseHours, parsePast, type Moment } from '../option-values.ts';
import { cellText, columnsIn, namedValues, type Column, type Terminal } from '../terminal.ts';
import { sheetCommands } from './sheets.ts';
import { attributesHelp, attributesIn, attributesMean } from './rows.ts';
import { textIn } from '../../../../shared/wire/json.ts';

const named = { '<key>': 'hash or hint' };

interface Edit<Words extends unknown[]> extends Omit<CommandParts, 'needs'> {
  edit: (ports: OperatorPorts, written: string, ...words: Words) => Promise<EditKeyPlan>;
}

/** A command that changes attributes of a key's row. */
const editCommand = <Words extends unknown[]>(name: string, { edit, takes, ...parts }: Edit<Words>) =>
  changes(name, {
    ...parts,
    takes: { ...named, ...takes },
    async plan(run, written: string, ...words: Words) {
      const plan = await edit(run.ports, written, ...words);
      const facts = { key: plan.name, rights: plan.rights };
      return rowWrites(run, plan, { said: 'It is written; live within 30 seconds.', facts });
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
  does: 'API keys of clients',
  notes:
    '\nA key is shown once, when it is made; the tables hold only its hash.\nCommands that take a <key> accept its hash (the first 4 characters or more) or its hint, as `key list` shows them.',
  commands: [
    changes('new', {
      does: 'make a key for an account, and the account if there is none',
      takes: { '<account>': 'who pays', '[attributes...]': attributesMean },
      notes: attributesHelp(keyFields),
      examples: [
        'key new acme',
        'key new acme models=gpt-4o,gpt-4o-mini rpm=60 expires_at=2027-01-01 "name=batch job"',
      ],
      async plan({ ports, terminal }, account: string, written: string[]) {
        const attributes = written.length === 0 ? {} : attributesIn(written, keyFields);
        const plan = await planCreateKey(ports, { account, attributes });
        return writes({
          plan,
          carryOut: () => terminal.revealing(carryOutKey(ports, plan)),
          print: (shown, made) => printNewKey(shown, { ...plan, ...made }),
          facts: (made) => newKeyFacts(plan, made),
        });
      },
    }),
    shows('list', {
      does: 'list keys and what the relay makes of them',
      lists: true,
      takes: { '--account <name>': 'only those of this account' },
      examples: ['key list --account acme', 'key list --csv'],
      async run({ ports, terminal }, options: { account?: string }) {
        terminal.printList(await listKeys(ports, options), {
          columns: keyColumns,
          json: keyJson,
          empty: 'no keys: make one with `npx --no relay-ops key new <account>`',
        });
      },
    }),
    shows('check', {
      does: 'say what the relay answers to a key, and why; exit code 0 when it is usable, else 1',
      takes: {
        '[key]': 'the whole key (default: read from standard input, which keeps it out of the history)',
      },
      examples: ['echo "$KEY" | key check'],
      async run({ ports, terminal }, written: string | undefined) {
        const secretKey = written ?? (await terminal.readInput('Paste the key'));
        const { state, why, name } = await checkKey(ports, secretKey);
        if (terminal.format === 'json') terminal.printJson({ state, why });
        if (state !== 'usable')
          throw new Failure(`${name ?? 'this'} is ${stateWords[state] ?? state}: ${why}
The relay answers 401 invalid_api_key.`);
        if (terminal.format === 'text') terminal.print(`${name} is usable: ${why}`);
      },
    }),
    shows('show', {
      does: 'show all attributes of a key as they are written, and what the relay makes of it',
      takes: named,
      examples: ['key show 3f9a1c', 'key show sk-AbCd...wXyZ --json'],
      async run({ ports, terminal }, written: string) {
        const { row } = await findKey(ports, written);
        const [key] = keyViewsOf([row], ports.clock.now());
        if (!key) return;
        const { row: kept, ...values } = keyJson(key);
        terminal.printAs({ ...values, row: kept }, () =>
          terminal.printFacts(
            Object.entries({ ...values, ...kept }).map(([name, value]) => [name, cellText(value)]),
          ),
        );
      },
    }),
    editCommand('set', {
      does: 'set attributes of a key: customer, name, models, limits, budget, end',
      takes: { '<attributes...>': attributesMean },
      notes: attributesHelp(heldKeyFields),
      examples: [
        'key set 3f9a1c rpm=60 max_concurrency=5 budget.amount=20 budget.period=month',
        'key set 3f9a1c models=gpt-4o,gpt-4o-mini rpm=',
        'key set 3f9a1c account=other',
      ],
      async edit(ports, written, words: string[]) {
        const { hash, row } = await findKey(ports, written);
        return planEditKey(ports, hash, attributesIn(words, heldKeyFields, row));
      },
    }),
    changes('off', {
      does: 'refuse a key from now on (within 30 s)',
      takes: named,
      examples: ['key off 3f9a1c --stack relay --yes'],
      async plan(run, written: string) {
        const plan = await planDisableKey(run.ports, written);
        const said = `${plan.name} is disabled; the relay refuses it within 30 seconds.`;
        return rowWrites(run, plan, { said, facts: { key: plan.name } });
      },
    }),
    editCommand('on', {
      does: 'let a disabled key work again',
      examples: ['key on 3f9a1c'],
      edit: planEnableKey,
    }),
    changes('rotate', {
      does: 'make a new key with the same rights; the old one expires',
      takes: {
        ...named,
        '--grace <time>': ['how long the old key still works, such as 48h or 7d', parseHours, 24],
      },
      examples: ['key rotate sk-AbCd...wXyZ --grace 7d'],
      async plan({ ports, terminal }, written: string, { grace }: { grace: number }) {
        const plan = await planRotateKey(ports, { written, graceHours: grace });
        return writes({
          plan,
          carryOut: () => terminal.revealing(carryOutKey(ports, plan)),
          print(shown, made) {
            printNewKey(shown, { ...plan, ...made });
            shown.remark(`${plan.oldName} works until ${plan.oldWorksUntil}.`);
          },
          facts: (made) => ({
            ...newKeyFacts(plan, made),
            old: plan.oldName,
            old_works_until: plan.oldWorksUntil,
          }),
        });
      },
    }),
    shows('use', {
      does: 'what a key called and spent since a time, by hour and model',
      lists: true,
      takes: { ...named, '--since <time>': ['such as 2h, yesterday (default: a day ago)', parsePast] },
      examples: ['key use 3f9a1c --since 2026-11-20', 'key use 3f9a1c --csv'],
      async run({ ports, terminal }, written: string, { since }: { since?: Moment }) {
        const { hash, account } = await findKey(ports, written);
        const nowMs = ports.clock.now();
        const sinceMs = since?.(nowMs) ?? nowMs - dayMs;
        if (account === '') throw usageFailure('the row of this key has no account, so it called nothing');
        const wanted = { account, hash, sinceMs };
        printKeyUse(terminal, await viewKeyUse(ports, wanted));
      },
    }),
    changes('leaked', {
      does: 'refuse a key at once, make its successor, say what it was used for, what to tell the customer, what to refund',
      takes: {
        ...named,
        '--since <time>': ['its use from then on is shown (default: a day ago)', parsePast],
        '--no-successor': 'make no new key',
      },
      examples: ['key leaked 3f9a1c --since 2026-11-20T09:00:00Z'],
      plan: planLeaked,
    }),
    ...sheetCommands('key', keySheet),
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
  return writes({
    plan,
    preview: (shown) => known && isText && printLeaked(shown, plan, known),
    carryOut: () =>
      // At once: what is read afterwards may take long, or fail.
      carryOutLeakedKey(ports, plan, ({ secretKey }) => {
        terminal.reveal(secretKey);
        if (isText) terminal.print(`The successor is made: ${secretKey}`);
      }),
    print: (shown, made) => printLeaked(shown, plan, made),
    facts: (made) => leakedFacts(plan, made ?? known),
  });
}

/** This many characters of a hash identify a key. */
const shownHashCharacters = 12;
const hintCharacters = 'sk-AbCd...wXyZ'.length;

export function printNewKey(
  { print }: Terminal,
  { secretKey, account, rights }: MadeKey & Pick<NewKeyPlan, 'account' | 'rights'>,
): void {
  print(`\n  ${secretKey}\n`);
  print('Copy it now: only its hash is stored, so nobody can show it again.');
  print(`Account ${account}; ${rights}. It works within 5 seconds.`);
}

export const newKeyFacts = (
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
    ({ row }) => shortHash(row['hash']),
  ],
  ['hint', '', ({ row, state }) => (state === 'invalid' ? hintText(row['hint']) : row['hint'])],
  ['account', 'ACCOUNT', ({ row }) => row['account'], ({ row }) => textIn(row['account'])],
  ['state', 'STATE', ({ state }) => state],
  ['why', 'WHY', ({ why }) => why],
];

/** A row that cannot be read may hold a secret anywhere, also as its hash: no attribute of it is shown that is not known. */
function keyJson(key: KeyView): Record<string, unknown> & { row?: object } {
  const values = namedValues(keyColumns, key);
  if (key.state === 'invalid') return values;
  const kept = Object.entries(key.row).filter(([name]) => !name.startsWith('_') || marks.has(name));
  return { ...values, row: Object.fromEntries(kept) };
}

/** The notes that this tool and the relay write. */
const marks = new Set(['_created', '_replaces', '_by', '_at', '_problem', '_warning']);

/** Anything longer than a hint is none. */
export const hintText = (hint: unknown): string => textIn(hint).slice(0, hintCharacters) || '-';
export const hashText = (hash: unknown): string => maskHash(textIn(hash));
export const shortHash = (hash: unknown): string => hashText(hash).slice(0, shownHashCharacters);

const stateWords: Partial<Record<KeyCheck['state'], string>> = {
  kind: 'of the wrong kind',
  account_off: 'refused with its account',
};

const hourColumns: Column<KeyUse['hours'][number]>[] = [
  ['hour', 'HOUR', ({ hour }) => hour],
  ['model', 'MODEL', ({ model }) => model],
  ...columnsIn(({ figures }: KeyUse['hours'][number]) => figures, figureColumns),
];

function printKeyUse(terminal: Terminal, { hours, sum, sinceMs, problems }: KeyUse): void {
  terminal.printList(hours, { columns: hourColumns, empty: `it called nothing since ${isoTime(sinceMs)}` });
  problems.forEach(terminal.remark);
  const calls = sum.counts.calls ?? 0;
  if (terminal.format === 'text' && calls > 0)
    terminal.print(`${formatCount(calls, 'call')}, ${formatYuan(sum.amounts.charged ?? 0n)} yuan in all.`);
}

function printLeaked(
  terminal: Terminal,
  plan: LeakedKeyPlan,
  { successor, use, problem }: LeakedKeyMade,
): void {
  const { print, printMessage, remark } = terminal;
  const hash = plan.use.hash.slice(0, 12);
  const refused = plan.earlier ? 'was refused before' : 'is refused within 30 seconds';
  print(`${plan.name} ${refused}. Its use since ${isoTime(plan.use.sinceMs)}:`);
  if (use) printKeyUse(terminal, use);
  else remark(`it could not be read: ${problem}. Ask again: key leaked ${hash}`);
  if (!plan.earlier)
    remark(
      `Calls that still run, and those of the next 30 seconds, are not in it: look again before you refund (key use ${hash}).`,
    );
  const once = successor ? '; the new key is stored nowhere and is not shown again' : '';
  print(`\nSend this to the customer${once}:`);
  printMessage(writeLeakMessage({ plan, secretKey: successor?.secretKey, use }));
  const refund = planLeakRefund({ plan, use });
  if (use && use.refunded > 0n) print(`${formatYuan(use.refunded)} yuan of it were refunded already.`);
  if (refund !== undefined) print(`To give back what it spent (choose the amount): ${refundCommand(refund)}`);
}

function leakedFacts(plan: LeakedKeyPlan, made: LeakedKeyMade | undefined): object {
  const facts = { account: plan.account, leaked: plan.name };
  if (!made) return facts;
  const { successor, use, problem } = made;
  const refund = planLeakRefund({ plan, use });
  return {
    ...facts,
    since: isoTime(plan.use.sinceMs),
    ...(use && {
      sum: namedValues(figureColumns, use.sum),
      refunded: formatYuan(use.refunded),
      hours: use.hours.map((hour) => namedValues(hourColumns, hour)),
    }),
    ...(problem !== undefined && { problem }),
    ...(plan.earlier && { leaked_at: plan.earlier.at, successor: plan.earlier.successor ?? null }),
    ...(successor && { key: successor.secretKey, hash: successor.hash, hint: successor.hint }),
    message: writeLeakMessage({ plan, secretKey: successor?.secretKey, use }).join('\n'),
    refund: refund ? refundCommand(refund) : null,
  };
}
