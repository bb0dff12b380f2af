/**
 * Delivers notices: at once when one is put, and again with growing delays while a receiver does not take it. Each
 * receiver gets a notice at least once, always under the same id; a crash after the sending repeats it. Must never decide
 * what is reported.
 */
import type { AlertSettings } from '../../config/settings.ts';
import type { Clock } from '../ports/host.ts';
import type {
  NoticeSender,
  AlertAccounts,
  NoticeStore,
  Receiver,
  StoredNotice,
  NoticeTarget,
} from '../ports/alerts.ts';
import { StoreBusy } from '../ports/store-errors.ts';
import { workOnEach } from '../retry.ts';
import type { Log, Metrics } from '../ports/telemetry.ts';
import type { AlertedAccount } from '../../config/rows/alerted-account.ts';

interface NotifierPorts {
  clock: Pick<Clock, 'now'>;
  notices: NoticeStore;
  accounts: Pick<AlertAccounts, 'row'>;
  settings: () => Promise<AlertSettings>;
  sender: NoticeSender;
  metrics: Metrics;
  log: Log;
}

/** A run begins no further try after this time; the next run goes on. */
const runMs = 60_000;
/** The list of those that wait is one item, read as a whole. */
const waitingMax = 1_000;

export const createNotifier = (ports: NotifierPorts) => ({
  /** Tries a new notice. Safe to repeat and in any order. Rejects when the store does not answer. */
  take: (id: string): Promise<void> => tryNotice(ports, id, false),
  /** Tries those that are due. Goes on after a failure and finally rejects with the first one. */
  retry: async (): Promise<void> => {
    const beganMs = ports.clock.now();
    await workOnEach(await ports.notices.waiting(), async (id) => {
      if (ports.clock.now() - beganMs > runMs) return;
      await tryNotice(ports, id, true).catch((error: unknown) => {
        ports.log.fault(id, error);
        throw error;
      });
    });
  },
});

/** @param waits whether the notice is in the list of those that wait */
async function tryNotice(ports: NotifierPorts, id: string, waits: boolean): Promise<void> {
  const { notices, clock } = ports;
  const found = await notices.find(id);
  if (!found) return waits ? notices.forget([id]) : undefined;
  const nowMs = clock.now();
  const tries = found.tries + 1;
  const isDue = found.dueMs <= nowMs;
  // The last try began and never ended.
  if (isDue && tries > triesMax) return giveUp(ports, found);
  // The process may die during a try, so the notice has to be in the list.
  if (!isDue || !(await notices.claim(id, found.tries, nowMs + delayMs(tries))))
    return wait(ports, id, waits);
  const left = await sendToAll(ports, found);
  if (left.length > 0 && tries >= triesMax) return giveUp(ports, { ...found, tries, left });
  await notices.leave(id, tries, left);
  if (left.length > 0) return wait(ports, id, waits);
  if (waits) await notices.forget([id]);
}

/** A full list makes the table stream wait, and after its last retry nobody would know of the notice. */
async function wait({ notices, metrics }: NotifierPorts, id: string, waits: boolean): Promise<void> {
  if (waits) return;
  if ((await notices.waiting()).length >= waitingMax) {
    metrics.count('AlertUndelivered');
    throw new StoreBusy('Too many notices wait.');
  }
  await notices.await(id);
}

/** Returns who has not got it. */
async function sendToAll(ports: NotifierPorts, { notice, left, tries }: StoredNotice): Promise<Receiver[]> {
  const { accounts, sender, log } = ports;
  const { id, type, account } = notice;
  const [settings, row] = await Promise.all([
    ports.settings(),
    account === undefined ? undefined : accounts.row(account),
  ]);
  const facts = { settings, row, offers: sender.offers };
  if (tries === 0) log.event('account_alert', { notice_id: id, type, account, ...notice.data });
  const missed = await Promise.all(
    left.map(async (receiver) => {
      const target = targetOf(receiver, facts);
      if (target === undefined) return [];
      const reason = typeof target === 'string' ? target : await sender.send(target, notice);
      if (reason === undefined) return [];
      log.event('alert_not_taken', { notice_id: id, type, account, receiver, reason, tries: tries + 1 });
      return [receiver];
    }),
  );
  return missed.flat();
}

async function giveUp({ notices, metrics, log }: NotifierPorts, gone: StoredNotice): Promise<void> {
  const { notice, left, tries } = gone;
  const { id, type, account } = notice;
  metrics.count('AlertUndelivered');
  log.event('alert_undelivered', { notice_id: id, type, account, receivers: left, tries });
  await notices.leave(id, tries, []);
  await notices.forget([id]);
}

// Whom a notice goes to, by settings, deployment and the account's row. Pure.

/** The receiver's address now; undefined: there is none (any more); a text: why it cannot be reported. */
function targetOf(
  receiver: Receiver,
  facts: { settings: AlertSettings; row: AlertedAccount | undefined; offers: NoticeSender['offers'] },
): NoticeTarget | string | undefined {
  const { settings, row, offers } = facts;
  const { secret } = settings;
  if (receiver === 'topic') return offers.topic ? { kind: 'topic' } : undefined;
  if (receiver === 'customer_mail')
    return offers.mail && row?.email !== undefined ? { kind: 'mail', to: row.email } : undefined;
  const own = receiver === 'webhook';
  const url = own ? settings.webhook : row?.webhook;
  if (url === undefined) return undefined;
  if (secret === undefined) return 'no_secret';
  return { kind: 'webhook', url, signs: secret, ...(!own && row && { account: row.account }) };
}

/** Seconds from the begin of one try to the next. The first is above the 10 s that a try may take. */
const delaysSeconds = [30, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800];

export const triesMax = delaysSeconds.length + 1;

/** How long after the begin of try number `tries` (from 1) nobody tries again, in milliseconds. */
const delayMs = (tries: number): number =>
  (delaysSeconds[Math.min(tries, delaysSeconds.length) - 1] ?? 0) * 1000;
