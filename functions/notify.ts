/** Delivers new notices from the table stream of `runtime`, and retries failed ones each minute. Each minute it also checks channels. */
import { createRequestSigner } from '../shared/adapters/aws/aws-signature.ts';
import { createChannelHours } from '../shared/adapters/dynamodb/alerts/channel-hours.ts';
import {
  createAlertAccounts,
  createAlertStore,
  createNoticeStore,
} from '../shared/adapters/dynamodb/alerts/alert-store.ts';
import { createAlertSettings } from '../shared/adapters/dynamodb/config-store.ts';
import { createEventHandler } from '../shared/adapters/entry/event-handler.ts';
import { readNoticeRecord, createTableStreamHandler } from '../shared/adapters/entry/table-streams.ts';
import { createSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { readAlertAccess } from '../shared/adapters/system/environment.ts';
import { timeSortedIds } from '../shared/adapters/system/node-ports.ts';
import { createHttpsTransport } from '../shared/adapters/transport/https-transport.ts';
import { createNoticeSender } from '../shared/adapters/transport/notice-sender.ts';
import { createChannelWatch } from '../shared/relay/alerts/channel-watch.ts';
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
const watch = createChannelWatch({
  ...deps,
  ids: timeSortedIds(clock),
  marks: createAlertStore(client, stack),
  hours: createChannelHours(client, stack),
});
const poisoned = { event: 'alert_poisoned', metric: 'AlertUndelivered' } as const;

export const handler = createEventHandler(deps.log, {
  records: createTableStreamHandler(readNoticeRecord, {
    ...deps,
    take: (id) => notices.take(id),
    poisonReport: poisoned,
  }),
  schedule: async () => {
    // Run both at once: a failure of one must not stop the other.
    const jobs = await Promise.allSettled([notices.retry(), watch()]);
    for (const job of jobs) if (job.status === 'rejected') throw job.reason;
  },
});
