/** Whom a notice goes to, by settings, deployment and the account's row. Pure. */
import type { AlertedAccount } from '../../config/rows/alerted-account.ts';
import type { AlertSettings } from '../../config/rows/settings.ts';
import type { NoticeSender, NoticeTarget } from '../ports/notices.ts';
import type { Receiver } from '../ports/stores/notice-store.ts';

export interface ReceiverFacts {
  settings: AlertSettings;
  row: AlertedAccount | undefined;
  offers: NoticeSender['offers'];
}

/** The receiver's address now; undefined: there is none (any more); a text: why it cannot be told. */
export function targetOf(
  receiver: Receiver,
  { settings, row, offers }: ReceiverFacts,
): NoticeTarget | string | undefined {
  switch (receiver) {
    case 'topic':
      return offers.topic ? { kind: 'topic' } : undefined;
    case 'webhook':
      return settings.webhook === undefined || settings.secret === undefined
        ? undefined
        : { kind: 'webhook', url: settings.webhook, signs: settings.secret };
    case 'customer_webhook':
      if (row?.webhook === undefined) return undefined;
      if (settings.secret === undefined) return 'no_secret';
      return { kind: 'webhook', url: row.webhook, signs: settings.secret, account: row.account };
    case 'customer_mail':
      if (row?.email === undefined) return undefined;
      return offers.mail ? { kind: 'mail', to: row.email } : 'no_sender';
  }
}
