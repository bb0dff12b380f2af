/** Delivers notices: new ones from the table stream of `runtime`, failed ones on a schedule. */
import { createRequestSigner } from '../shared/adapters/aws/aws-signature.ts';
import { createAlertAccounts, createNoticeStore } from '../shared/adapters/dynamodb/alerts/alert-store.ts';
import { createAlertSettings } from '../shared/adapters/dynamodb/config-store.ts';
import { createEventHandler } from '../shared/adapters/entry/event-handler.ts';
import { readNoticeRecord, createTableStreamHandler } from '../shared/adapters/entry/table-streams.ts';
import { createSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { readAlertAccess } from '../shared/adapters/system/environment.ts';
import { createHttpsTransport } from '../shared/adapters/transport/https-transport.ts';
import { createNoticeSender } from '../shared/adapters/transport/notice-sender.ts';
import { createNotifier } from '../shared/relay/alerts/notifier.ts';
import { composeJobDeps } from './compose/job-deps.ts';

const { environment, ...deps } = composeJobDeps();
const { client, clock, stack } = deps;
const { aws, local } = environment;
const sender = createNoticeSender({
  ...readAlertAccess(),
  region: aws.region,
  transport: createHttpsTransport({ local, sign: createRequestSigner({ aws, clock }) }),
  secrets: createSecretStore({ environment, clock, purpose: 'alerts' }),
  clock,
});
const notices = createNotifier({
  ...deps,
  notices: createNoticeStore(client, stack),
  accounts: createAlertAccounts({ client, clock, stack, local }),
  settings: createAlertSettings(client, stack),
  sender,
});
const poisoned = { event: 'alert_poisoned', metric: 'AlertUndelivered' } as const;

export const handler = createEventHandler(deps.log, {
  records: createTableStreamHandler(readNoticeRecord, {
    ...deps,
    take: (id) => notices.take(id),
    poisonReport: poisoned,
  }),
  schedule: () => notices.retry(),
});
