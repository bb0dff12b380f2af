/** Delivers notices about accounts. */
import { dynamoAlertAccounts, dynamoNoticeStore } from '../shared/adapters/dynamodb/alerts/alert-store.ts';
import { backgroundTimes, tableClient } from '../shared/adapters/dynamodb/table-client.ts';
import { httpsNoticeSender } from '../shared/adapters/transport/notice-sender.ts';
import { cachedSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { readAlertAccess, readEnvironment } from '../shared/adapters/system/environment.ts';
import { systemClock as clock } from '../shared/adapters/system/node-ports.ts';
import { backgroundMetrics } from '../shared/adapters/telemetry/metrics.ts';
import { jsonLog } from '../shared/adapters/telemetry/json-log.ts';
import { httpsUpstreamTransport } from '../shared/adapters/transport/https-transport.ts';
import { requestSigner } from '../shared/adapters/aws/signature.ts';
import { notifier } from '../shared/relay/alerts/notifier.ts';
import { alertSettings } from '../shared/adapters/dynamodb/config-store.ts';
import { streamOrSchedule, tableStreamHandler, noticeIdOf } from '../shared/adapters/entry/table-streams.ts';

function notifyJob() {
  const environment = readEnvironment();
  const { aws, local, stack, version } = environment;
  const log = jsonLog(version);
  const metrics = backgroundMetrics(stack);
  const client = tableClient(aws, backgroundTimes);
  const sender = httpsNoticeSender({
    ...readAlertAccess(),
    region: aws.region,
    transport: httpsUpstreamTransport({ local, sign: requestSigner({ aws, clock }) }),
    secrets: cachedSecretStore({ environment, clock }),
    clock,
  });
  const { take, retry } = notifier({
    clock,
    notices: dynamoNoticeStore(client, stack),
    accounts: dynamoAlertAccounts({ client, clock, stack, local }),
    settings: alertSettings(client, stack),
    sender,
    metrics,
    log,
  });
  const poisoned = { event: 'alert_poisoned', metric: 'AlertUndelivered' } as const;
  return { take, retry, poisoned, log, metrics };
}

// Delivers notices: from the table stream of `runtime` when one is put, and on a schedule those that failed.

const job = notifyJob();

export const handler = streamOrSchedule(tableStreamHandler(noticeIdOf, job), job.retry);
