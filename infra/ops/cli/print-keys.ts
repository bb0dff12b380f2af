/** Prints keys. Only this file shows a new key: once, when it is created. */
import type { KeyCheck, KeyView } from '../../../shared/operate/keys/list-keys.ts';
import { shownHash } from '../../../shared/config/rows/key-row.ts';
import type { MadeKey, NewKeyPlan } from '../../../shared/operate/keys/edit-key.ts';
import { Failure } from '../../../shared/operate/plan.ts';
import type { Terminal } from './terminal.ts';

/** This many characters of a hash identify a key. */
const shownHashCharacters = 12;
const hintCharacters = 'sk-AbCd...wXyZ'.length;

export function printNewKey(
  { print, reveal }: Terminal,
  { secretKey, account, rights }: MadeKey & Pick<NewKeyPlan, 'account' | 'rights'>,
): void {
  reveal(secretKey);
  print(`\n  ${secretKey}\n`);
  print('Copy it now: only its hash is stored, so nobody can show it again.');
  print(`Account ${account}; ${rights}. It works within 5 seconds.`);
}

/** @param made undefined: it was not made */
export function newKeyFacts(
  { reveal }: Terminal,
  { account, rights }: Pick<NewKeyPlan, 'account' | 'rights'>,
  made: MadeKey | undefined,
) {
  if (!made) return { account, rights };
  reveal(made.secretKey);
  return { account, rights, key: made.secretKey, hash: made.hash, hint: made.hint };
}

export const printKeys = (terminal: Terminal, keys: KeyView[]): void =>
  terminal.printList({
    columns: ['hash', 'hint', 'account', 'state', 'why'],
    rows: keys.map(keyJson),
    table: () => [
      ['HINT', 'HASH', 'ACCOUNT', 'STATE', 'WHY'],
      ...keys.map(({ row, state, why }) => [
        hintText(row['hint']),
        shortHash(row['hash']),
        textOf(row['account']),
        state,
        why,
      ]),
    ],
    empty: 'no keys: make one with `npx --no relay-ops key create --account <name>`',
  });

/** A row that cannot be read may hold a secret anywhere, also as its hash: no attribute of it is shown that is not known. */
function keyJson({ row, state, why }: KeyView): object {
  const { hash, hint, account } = row;
  if (state === 'invalid') {
    return { hash: hashText(hash), hint: hintText(hint), account, state, why };
  }
  const kept = Object.entries(row).filter(([name]) => !name.startsWith('_') || marks.has(name));
  return { hash, hint, account, state, why, row: Object.fromEntries(kept) };
}

/** The notes that this tool and the relay write. */
const marks = new Set(['_created', '_replaces', '_by', '_at', '_problem', '_warning']);

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
/** Anything longer than a hint is none. */
export const hintText = (hint: unknown): string => textOf(hint).slice(0, hintCharacters) || '-';
export const hashText = (hash: unknown): string => shownHash(textOf(hash));
export const shortHash = (hash: unknown): string => hashText(hash).slice(0, shownHashCharacters);

const wordsOf: Partial<Record<KeyCheck['state'], string>> = {
  kind: 'of the wrong kind',
  account_off: 'refused with its account',
};

/** Throws a Failure for a key that is not usable. */
export function printKeyCheck(terminal: Terminal, { state, why, name }: KeyCheck): void {
  const isJson = terminal.format === 'json';
  if (isJson) terminal.printJson({ state, why });
  if (state !== 'usable')
    throw new Failure(`${name ?? 'this'} is ${wordsOf[state] ?? state}: ${why}
The relay answers 401 invalid_api_key.`);
  if (!isJson) terminal.print(`${name} is usable: ${why}`);
}
