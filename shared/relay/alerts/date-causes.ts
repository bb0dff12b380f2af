/** Decides which dates of accounts and keys are near enough to tell. Pure. A changed date is a new cause. */
import type { AlertedAccount } from '../../config/rows/alerted-account.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { AlertSettings } from '../../config/settings/settings.ts';
import { isoTime } from '../../wire/iso-time.ts';
import type { Notice } from '../../wire/public/notice.ts';

export interface DateCause extends Pick<Notice, 'type' | 'account' | 'data'> {
  cause: string;
  /** Unix seconds after which the cause is too old to be reported, so that its mark may go. */
  expires: number;
}

type Days = Pick<AlertSettings, 'planDays' | 'keyDays'>;

const dayMs = 24 * 3600 * 1000;
/** An end longer ago than this is not reported any more: the plan ended before anybody watched. */
const lateDays = 7;
const markDays = 30;

export function planCauses(row: AlertedAccount, { planDays }: Days, nowMs: number): DateCause[] {
  const { account, planUntilMs: untilMs, planLevel } = row;
  if (untilMs === undefined || nowMs >= untilMs + lateDays * dayMs) return [];
  if (nowMs < untilMs - planDays * dayMs) return [];
  const type = nowMs < untilMs ? 'plan.ending' : 'plan.ended';
  const data = { level: planLevel ?? 0, until: isoTime(untilMs) };
  return [{ type, account, data, ...markOf(`${type}#${account}`, untilMs) }];
}

/** A key that is off, or of another kind, is used by nobody. */
export function keyCauses(row: KeyRow, { keyDays }: Days, nowMs: number): DateCause[] {
  const { account, hash, hint, expires_at: atMs } = row;
  if (atMs === undefined || !row.enabled || row.agent !== 'api') return [];
  if (nowMs >= atMs || nowMs < atMs - keyDays * dayMs) return [];
  const data = { key: hash.slice(0, 12), hint, expires_at: isoTime(atMs) };
  return [{ type: 'key.expiring', account, data, ...markOf(`key.expiring#${hash}`, atMs) }];
}

const markOf = (name: string, atMs: number): Pick<DateCause, 'cause' | 'expires'> => ({
  cause: `${name}#${isoTime(atMs)}`,
  expires: Math.floor((atMs + markDays * dayMs) / 1000),
});
