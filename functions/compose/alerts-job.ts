/** Decides what is reported about accounts. */
import { dynamoAlertAccounts } from '../../shared/adapters/dynamodb/alerts/dynamo-alert-accounts.ts';
import { dynamoAlertStore } from '../../shared/adapters/dynamodb/alerts/dynamo-alert-store.ts';
import { backgroundClient, documentsOn } from '../../shared/adapters/dynamodb/sdk-client.ts';
import { readEnvironment } from '../../shared/adapters/system/environment.ts';
import { systemClock as clock } from '../../shared/adapters/system/system-clock.ts';
import { timeSortedIds } from '../../shared/adapters/system/time-sorted-ids.ts';
import { backgroundMetrics } from '../../shared/adapters/telemetry/background-metrics.ts';
import { jsonLog } from '../../shared/adapters/telemetry/json-log.ts';
import { alertPass } from '../../shared/relay/alerts/alert-pass.ts';
import { balanceWatch } from '../../shared/relay/alerts/balance-watch.ts';
import { alertSettings } from './alert-settings.ts';

export function alertsJob() {
  const { aws, local, stack, version } = readEnvironment();
  const log = jsonLog(version);
  const client = documentsOn(backgroundClient(aws));
  const marks = dynamoAlertStore(client, stack);
  const accounts = dynamoAlertAccounts({ client, clock, stack, local });
  const parts = { clock, ids: timeSortedIds(clock), marks, accounts };
  const watch = balanceWatch(parts);
  return {
    take: watch.take,
    pass: alertPass({ ...parts, watch, settings: alertSettings(client, stack), log }),
    poisoned: { event: 'alert_poisoned', metric: 'AlertUndelivered' } as const,
    log,
    metrics: backgroundMetrics(stack),
  };
}
