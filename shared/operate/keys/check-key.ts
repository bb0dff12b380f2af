/** View: whether the relay accepts a key, and why. */
import { isAccountOff } from '../../config/rows/account-row.ts';
import { keyHash } from '../../tables/key-hash.ts';
import { isSecretKey, keyHint } from '../../wire/name-patterns.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { keyState, type KeyState } from './key-state.ts';

export interface KeyCheck {
  state: KeyState['state'] | 'malformed' | 'account_off';
  why: string;
  /** The key's name in messages; undefined: the text cannot be a key. */
  name?: string;
}

/** @param written the whole key */
export async function checkKey({ tables, clock }: OperatorPorts, written: string): Promise<KeyCheck> {
  const secretKey = written.trim();
  if (secretKey === '') throw usageFailure('no key was given, neither as argument nor on standard input');
  if (!isSecretKey(secretKey))
    return { state: 'malformed', why: 'a key is sk- and up to 200 visible characters, without blanks' };
  const { state, why, row } = keyState(await tables.get('keys', keyHash(secretKey)), clock.now());
  const isOff = state === 'usable' && row && isAccountOff(await tables.get('accounts', row.account));
  // A short text is not shown, because its hint would contain most of it.
  const hint = row?.hint || (secretKey.length >= 20 ? keyHint(secretKey) : 'this key');
  const name = row ? `${hint} of account ${row.account}` : hint;
  if (isOff) return { state: 'account_off', why: 'the row of its account in accounts is not enabled', name };
  return { state, why, name };
}
