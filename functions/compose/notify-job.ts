/** Delivers notices about accounts. */
import { dynamoAlertAccounts } from '../../shared/adapters/dynamodb/alerts/dynamo-alert-accounts.ts';
import { dynamoNoticeStore } from '../../shared/adapters/dynamodb/alerts/dynamo-notice-store.ts';
import { backgroundClient, documentsOn } from '../../shared/adapters/dynamodb/sdk-client.ts';
import { httpsNoticeSender } from '../../shared/adapters/notify/https-notice-sender.ts';
import { cachedSecretStore } from '../../shared/adapters/secrets/cached-secret-store.ts';
import { readAlertAccess, readEnvironment } from '../../shared/adapters/system/environment.ts';
import { systemClock as clock } from '../../shared/adapters/system/system-clock.ts';
import { backgroundMetrics } from '../../shared/adapters/telemetry/background-metrics.ts';
import { jsonLog } from '../../shared/adapters/telemetry/json-log.ts';
import { httpsUpstreamTransport } from '../../shared/adapters/transport/https-upstream-transport.ts';
import { requestSigner } from '../../shared/adapters/transport/request-signer.ts';
import { notifier } from '../../shared/relay/alerts/notifier.ts';
import { alertSettings } from './alert-settings.ts';

export function notifyJob() {
  const environment = readEnvironment();
  const { aws, local, stack, version } = environment;
  const log = jsonLog(version);
  const metrics = backgroundMetrics(stack);
  const client = documentsOn(backgroundClient(aws));
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
