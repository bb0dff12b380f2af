import { randomBytes } from 'node:crypto';
import { NumberValue } from '@aws-sdk/lib-dynamodb';
import { formatYuan, parseYuan } from '../../billing/amount.ts';
import { GrantRow } from '../../config/rows/grant-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { WrittenGrant } from '../ledger-reader.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import { findAccount } from './find-account.ts';
import { isoTime } from '../../wire/iso-time.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { remark, say } from '../../../infra/ops/cli/terminal/terminal.ts';

export interface GrantOptions {
  reason?: string;
  id?: string;
  new?: boolean;
  /** Seconds. */
  wait: number;
}

const pauseMs = 300;

/** Writes a grant and waits until the relay has applied it. */
export async function grantAmount(
  session: Session,
  account: string,
  written: string,
  options: GrantOptions,
  nowMs: number,
): Promise<void> {
  const grantId = options.id ?? newGrantId(nowMs);
  const facts = {
    account,
    grant_id: grantId,
    ...(options.reason !== undefined && { reason: options.reason }),
  };
  const reading = readRow(GrantRow, { ...facts, amount: written });
  if ('problem' in reading) throw usageFailure(`nothing was written: ${reading.problem}`);
  const { amount } = reading.row;
  await findAccount(session, account, options.new);
  const row = { ...facts, amount: NumberValue.from(formatYuan(amount)), _created: isoTime(nowMs) };
  if (await session.tables.create('grants', row))
    say(`grant ${grantId} of ${formatYuan(amount)} yuan is written.`);
  else await checkSame(session, account, grantId, amount);
  await reportApplied(session, account, grantId, options.wait);
}

/** Sorts by time. */
const newGrantId = (nowMs: number): string =>
  `${isoTime(nowMs).replaceAll(/[-:]/g, '')}-${randomBytes(4).toString('hex')}`;

/** A command that is repeated with its id finds its own row. */
async function checkSame(session: Session, account: string, grantId: string, amount: bigint): Promise<void> {
  const there = await grantOf(session, account, grantId);
  if (there && parseYuan(there.amount) === amount) {
    remark(`grant ${grantId} was written before; nothing is written again`);
    return;
  }
  throw new Failure(
    `there is a grant ${grantId} of ${there?.amount ?? 'another amount'} already: choose another --id`,
  );
}

async function grantOf(
  session: Session,
  account: string,
  grantId: string,
): Promise<WrittenGrant | undefined> {
  for await (const page of session.ledger.grants(account)) {
    const found = page.find((grant) => grant.grantId === grantId);
    if (found) return found;
  }
  return undefined;
}

async function reportApplied(
  session: Session,
  account: string,
  grantId: string,
  waitSeconds: number,
): Promise<void> {
  const untilMs = Date.now() + waitSeconds * 1000;
  for (;;) {
    const grant = await grantOf(session, account, grantId);
    if (grant?.problem !== undefined) throw new Failure(`the relay does not take it: ${grant.problem}`);
    if (grant?.applied !== undefined) break;
    if (Date.now() + pauseMs > untilMs) {
      remark('Not applied yet. It will be within minutes: see `account show`.');
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  const quota = await session.ledger.quota(account);
  const balance = quota && 'row' in quota ? `${formatYuan(quota.row.available)} yuan are available now` : '';
  say(`It is applied. ${account}: ${balance}.`);
}
