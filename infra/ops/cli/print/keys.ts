/** Prints keys. Only this file shows a new key: once, when it is created. */
import type { KeyCheck } from '../../../../shared/operate/keys/check-key.ts';
import type { MadeKey, NewKeyPlan } from '../../../../shared/operate/keys/create-key.ts';
import type { KeyView } from '../../../../shared/operate/keys/list-keys.ts';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import type { JsonOption } from '../terminal/option-values.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** This many characters of a hash identify a key. */
const shownHashCharacters = 12;

export function printNewKey(
  terminal: Terminal,
  { secretKey, hash, hint, account, rights }: MadeKey & Pick<NewKeyPlan, 'account' | 'rights'>,
  { json }: JsonOption,
): void {
  if (json) return terminal.printJson({ key: secretKey, hash, hint, account });
  terminal.print(`\n  ${secretKey}\n`);
  terminal.print('Copy it now: only its hash is stored, so nobody can show it again.');
  terminal.print(`Account ${account}; ${rights}. It works within 5 seconds.`);
}

export function printKeys(terminal: Terminal, keys: KeyView[], { json }: JsonOption): void {
  if (json) {
    const cells = keys.map(({ row, state, why }) => {
      const { hash, hint, account } = row;
      return { hash, hint, account, state, why, row };
    });
    return terminal.printJson(cells);
  }
  if (keys.length === 0)
    return terminal.print('no keys: make one with `npm run ops -- key create --account <name>`');
  terminal.printTable([
    ['HINT', 'HASH', 'ACCOUNT', 'STATE', 'WHY'],
    ...keys.map(({ row, state, why }) => [
      hintText(row['hint']),
      shortHash(row['hash']),
      textOf(row['account']),
      state,
      why,
    ]),
  ]);
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
export const hintText = (hint: unknown): string => textOf(hint) || '-';
export const shortHash = (hash: unknown): string => textOf(hash).slice(0, shownHashCharacters);

const wordsOf: Partial<Record<KeyCheck['state'], string>> = {
  kind: 'of the wrong kind',
  account_off: 'refused with its account',
};

/** Throws a Failure for a key that is not usable. */
export function printKeyCheck(
  terminal: Terminal,
  { state, why, name }: KeyCheck,
  { json }: JsonOption,
): void {
  if (json) terminal.printJson({ state, why });
  if (state !== 'usable')
    throw new Failure(`${name ?? 'this'} is ${wordsOf[state] ?? state}: ${why}
The relay answers 401 invalid_api_key.`);
  if (!json) terminal.print(`${name} is usable: ${why}`);
}
