import { Failure, usageFailure } from '../operator-failure.ts';
import { keyHash } from '../../tables/key-hash.ts';
import { isSecretKey, keyHint } from '../../wire/name-patterns.ts';
import { judgeKey } from './key-state.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { readInput, say, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';

/** Says what the relay would answer to this key. Throws when that is a refusal. */
export async function checkKey(session: Session, written: string | undefined, nowMs: number): Promise<void> {
  const secretKey = (written ?? (await readInput('Paste the key'))).trim();
  if (secretKey === '') throw usageFailure('no key was given, neither as argument nor on standard input');
  if (!isSecretKey(secretKey)) {
    return report(session, 'malformed', 'a key is sk- and up to 200 visible characters, without blanks', '');
  }
  const verdict = judgeKey(await session.tables.get('keys', keyHash(secretKey)), nowMs);
  const hint = verdict.row?.hint || (secretKey.length >= 20 ? keyHint(secretKey) : 'this key');
  const account = verdict.row ? ` of account ${verdict.row.account}` : '';
  return report(session, verdict.state, verdict.why, `${hint}${account} `);
}

function report(session: Session, state: string, why: string, whose: string): void {
  const usable = state === 'usable';
  if (session.json) sayJson({ state, why });
  else if (usable) say(`${whose}is usable: ${why}`);
  if (usable) return;
  throw new Failure(`${whose || 'this '}is ${state === 'kind' ? 'of the wrong kind' : state}: ${why}
The relay answers 401 invalid_api_key.`);
}
