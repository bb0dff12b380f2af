/** Delivers notices about accounts: from the table stream of `runtime` when one is put, and on a schedule those that failed. */
import { requestSigner } from '../shared/adapters/aws/aws-signature.ts';
import { dynamoAlertAccounts, dynamoNoticeStore } from '../shared/adapters/dynamodb/alerts/alert-store.ts';
import { alertSettings } from '../shared/adapters/dynamodb/config-store.ts';
import { eventHandler } from '../shared/adapters/entry/event-handler.ts';
import { noticeIdOf, tableStreamHandler } from '../shared/adapters/entry/table-streams.ts';
import { cachedSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { readAlertAccess } from '../shared/adapters/system/environment.ts';
import { httpsUpstreamTransport } from '../shared/adapters/transport/https-transport.ts';
import { httpsNoticeSender } from '../shared/adapters/transport/notice-sender.ts';
import { createNotifier } from '../shared/relay/alerts/notifier.ts';
import { jobParts } from './compose/job-parts.ts';

const { environment, ...parts } = jobParts();
const { client, clock, stack } = parts;
const { aws, local } = environment;
const sender = httpsNoticeSender({
  ...readAlertAccess(),
  region: aws.region,
  transport: httpsUpstreamTransport({ local, sign: requestSigner({ aws, clock }) }),
  secrets: cachedSecretStore({ environment, clock, purpose: 'alerts' }),
  clock,
});
const notices = createNotifier({
  ...parts,
  notices: dynamoNoticeStore(client, stack),
  accounts: dynamoAlertAccounts({ client, clock, stack, local }),
  settings: alertSettings(client, stack),
  sender,
});
const poisoned = { event: 'alert_poisoned', metric: 'AlertUndelivered' } as const;

export const handler = eventHandler(parts.log, {
  records: tableStreamHandler(noticeIdOf, { ...parts, take: (id) => notices.take(id), poisoned }),
  schedule: () => notices.retry(),
});
