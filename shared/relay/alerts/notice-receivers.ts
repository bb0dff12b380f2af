/** Whom a notice goes to, by settings, deployment and the account's row. Pure. */
import type { AlertedAccount } from '../../config/rows/alerted-account.ts';
import type { AlertSettings } from '../../config/settings/settings.ts';
import type { NoticeSender, NoticeTarget } from '../ports/alerts/notice-sender.ts';
import type { Receiver } from '../ports/alerts/notice-store.ts';

export interface ReceiverFacts {
  settings: AlertSettings;
  row: AlertedAccount | undefined;
  offers: NoticeSender['offers'];
}

/** The receiver's address now; undefined: there is none (any more); a text: why it cannot be reported. */
export function targetOf(
  receiver: Receiver,
  { settings, row, offers }: ReceiverFacts,
): NoticeTarget | string | undefined {
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
