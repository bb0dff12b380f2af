/**
 * POST /v1/account/codes: credits a redeem code to the key's account, once. Any usable key may redeem, because a code only adds to the
 * balance. A repeat by the same account gets the first answer again, so a lost reply loses nothing.
 */
import type { Grant } from '../../billing/ledger-row.ts';
import { convertToYuanNumber } from '../../billing/money.ts';
import { codeIdOf, CodeRow, findCodeState, hashCode } from '../../config/rows/code-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { isoTime } from '../../wire/iso-time.ts';
import type { RedeemedCode } from '../../wire/public-api.ts';
import { refuse } from '../http/refusal.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { Random } from '../ports/host.ts';
import { StoreBusy } from '../ports/store-errors.ts';
import { Backoff } from '../retry.ts';
import { checkNames, refuseField } from './made-key.ts';
import type { KeyRequest } from './top-up.ts';

export interface CodePorts extends Pick<ChatPorts, 'clock' | 'log'> {
  random: Random;
  codes: CodeStore;
}

/** Every method throws StoreUnavailable. */
export interface CodeStore {
  /** Returns the row without validating it. */
  find(hash: string): Promise<unknown>;
  /** Marks the code and writes its grant in one transaction. Returns false if the row has changed since the read. May throw StoreBusy. */
  redeem(code: CodeRow, grant: Grant, at: string): Promise<boolean>;
}

/** Limits an account in a minute: so many may be one code, sent by many at once; as guesses they find nothing. */
export const codesPerMinute = 100;
const budgetMs = 8_000;

const refusals = {
  redeemed: 'This code was redeemed by another account.',
  revoked: 'This code is no longer valid. Ask the seller of the code.',
  expired: 'This code has expired. Ask the seller of the code.',
};

export async function redeemCode(ports: CodePorts, { admitted, body }: KeyRequest): Promise<RedeemedCode> {
  checkNames(body, ['code']);
  if (typeof body['code'] !== 'string') throw refuseField('code', 'code must be the text of a redeem code.');
  // The credit would pay for nothing until the account has a balance again.
  if (admitted.account?.metered)
    throw refuse('top_up_not_offered', 'This account pays by the month, so the code was not redeemed.');
  const hash = hashCode(body['code']);
  const { account } = admitted.row;
  return new Backoff(ports, budgetMs).until(async () => {
    const reading = hash === undefined ? undefined : readRow(CodeRow, await ports.codes.find(hash));
    if (!reading || 'problem' in reading)
      throw refuse('code_not_found', 'This code does not exist. Check its 20 letters and digits.');
    const { row: code } = reading;
    const id = codeIdOf(code.hash);
    const nowMs = ports.clock.now();
    const describe = (atMs: number): RedeemedCode => ({
      object: 'account.code',
      id,
      amount: convertToYuanNumber(code.amount),
      redeemed_at: Math.floor(atMs / 1000),
    });
    if (code.redeemed_by === account) return describe(code.redeemed_at ?? nowMs);
    const state = findCodeState(code, nowMs);
    if (state !== 'open') throw refuse(`code_${state}`, refusals[state]);
    const reason = `code of batch ${code.batch}`;
    const grant = { account, grant_id: id, amount: code.amount, reason };
    if (!(await ports.codes.redeem(code, grant, isoTime(nowMs))))
      throw new StoreBusy('The code was redeemed or changed meanwhile.');
    ports.log.event('code_redeemed', { account, grant_id: id, batch: code.batch });
    return describe(nowMs);
  });
}
