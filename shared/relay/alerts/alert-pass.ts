/**
 * The scheduled pass over all accounts and keys: tells dates that come near, and looks at balances whose changes were
 * missed or whose limit was edited. Holds one page at a time.
 */
import type { AlertedAccount } from '../../config/rows/alerted-account.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { AlertSettings } from '../../config/settings.ts';
import { dayMs, isoTime } from '../../wire/iso-time.ts';
import type { Notice } from '../../wire/public-api.ts';
import type { AlertAccounts, AlertStore } from '../ports/alerts.ts';
import type { Log } from '../ports/telemetry.ts';
import { workOnEach } from '../retry.ts';
import type { AutoTopUpWatch } from './auto-top-up-watch.ts';
import { balanceCause, type BalanceWatch, createNotice, type NoticeInput } from './balance-watch.ts';

// Decides which dates of accounts and keys are near enough to tell. Pure. A changed date is a new cause.

interface DateCause extends Pick<Notice, 'type' | 'account' | 'data'> {
  cause: string;
  /** Unix seconds after which the cause is too old to be reported, so that its mark may go. */
  expires: number;
}

type Days = Pick<AlertSettings, 'planDays' | 'keyDays'>;

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
export function findKeyCauses(row: KeyRow, { keyDays }: Days, nowMs: number): DateCause[] {
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

interface AlertPassPorts extends NoticeInput {
  accounts: Pick<AlertAccounts, 'accounts' | 'keys'>;
  marks: AlertStore;
  watch: Pick<BalanceWatch, 'look'>;
  topUpWatch: Pick<AutoTopUpWatch, 'look' | 'active'>;
  /** Checks the balances that upstreams report. */
  watchUpstreams: () => Promise<void>;
  settings: () => Promise<AlertSettings>;
  log: Log;
}

/** Goes on after a failure and finally rejects with the first one: what was not reported is reported by the next pass. */
export const createAlertPass = (ports: AlertPassPorts) => async (): Promise<void> => {
  const settings = await ports.settings();
  const failures: unknown[] = [];
  const attempt = async (what: string, work: () => Promise<void>): Promise<void> => {
    await work().catch((error: unknown) => {
      ports.log.fault(what, error);
      failures.push(error);
    });
  };
  const tell = (causesAt: (nowMs: number) => DateCause[]): Promise<void> =>
    attempt('alert_dates', () => tellNew(ports, causesAt(ports.clock.now())));
  // Run in parallel: slow upstreams must not delay the accounts.
  const upstreams = attempt('alert_upstreams', ports.watchUpstreams);
  for await (const page of ports.accounts.accounts()) {
    await tell((nowMs) => page.flatMap((row) => planCauses(row, settings, nowMs)));
    await attempt('alert_balances', () => lookAt(ports, page));
    await attempt('auto_top_ups', () => topUpAll(ports, page));
  }
  for await (const page of ports.accounts.keys())
    await tell((nowMs) => page.flatMap((row) => findKeyCauses(row, settings, nowMs)));
  await upstreams;
  if (failures.length > 0) throw failures[0];
};

/** Reports the causes that have no mark yet. */
export async function tellNew(
  { marks, ...ports }: NoticeInput & { marks: Pick<AlertStore, 'marks' | 'raise'> },
  causes: readonly DateCause[],
): Promise<void> {
  if (causes.length === 0) return;
  const reported = await marks.marks(causes.map(({ cause }) => cause));
  const fresh = causes.filter(({ cause }) => !reported.has(cause));
  await workOnEach(fresh, async ({ cause, expires, ...about }) => {
    await marks.raise({ cause, seen: undefined, expires, notice: createNotice(ports, about) });
  });
}

/** An account whose limit was removed is looked at while its mark is open: then the cause is gone. */
async function lookAt({ marks, watch }: AlertPassPorts, page: AlertedAccount[]): Promise<void> {
  const seen = await marks.marks(page.map(({ account }) => balanceCause(account)));
  const worthALook = page.filter(
    ({ account, alertBelow }) => alertBelow !== undefined || seen.get(balanceCause(account))?.open,
  );
  await workOnEach(worthALook, ({ account }) => watch.look(account));
}

async function topUpAll({ topUpWatch }: AlertPassPorts, page: AlertedAccount[]): Promise<void> {
  const active = await topUpWatch.active(page.map(({ account }) => account));
  await workOnEach(active, topUpWatch.look);
}
