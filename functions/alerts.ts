/** Decides what is reported about accounts. */
import { dynamoAlertAccounts, dynamoAlertStore } from '../shared/adapters/dynamodb/alerts/alert-store.ts';
import { backgroundTimes, tableClient } from '../shared/adapters/dynamodb/table-client.ts';
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import { systemClock as clock, timeSortedIds } from '../shared/adapters/system/node-ports.ts';
import { backgroundMetrics } from '../shared/adapters/telemetry/metrics.ts';
import { jsonLog } from '../shared/adapters/telemetry/json-log.ts';
import { alertPass } from '../shared/relay/alerts/alert-pass.ts';
import { balanceWatch } from '../shared/relay/alerts/balance-watch.ts';
import { alertSettings } from '../shared/adapters/dynamodb/config-store.ts';
import {
  streamOrSchedule,
  tableStreamHandler,
  quotaChangeOf,
} from '../shared/adapters/entry/table-streams.ts';

function alertsJob() {
  const { aws, local, stack, version } = readEnvironment();
  const log = jsonLog(version);
  const client = tableClient(aws, backgroundTimes);
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

// Decides what operators and customers are reported about accounts: from the table stream of `quotas`, and on a schedule
// for dates that come near and changes that the stream missed.

const job = alertsJob();

export const handler = streamOrSchedule(tableStreamHandler(quotaChangeOf, job), job.pass);
