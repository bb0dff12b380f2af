/** What a stack takes in a month without a call. Knows no prices. */
import { atRest } from './background-amounts.ts';
import type { Taken } from './taken.ts';
import type { Workload } from './workload.ts';

export function idleUsage({ alarms, channels, webAcl }: Workload): Taken[] {
  const runs = atRest.hours * atRest.runsPerHour;
  return [
    { price: 'alarms', what: `metrics of alarms: ${alarms}`, quantity: alarms },
    { price: 'secrets', what: 'origin secret, seal key', quantity: atRest.ownSecrets },
    { price: 'secrets', what: `secrets of channels: ${channels}`, quantity: channels },
    {
      price: 'secretReads',
      what: 'checks of channel secrets',
      quantity: atRest.hours * atRest.secretReadsPerHour * channels,
    },
    { price: 'metrics', what: 'metrics at rest', quantity: atRest.restMetrics },
    { price: 'dashboards', what: 'the dashboard', quantity: atRest.dashboards },
    {
      price: 'lambdaCompute',
      what: 'scheduled runs',
      quantity: (runs * atRest.secondsOfRun * atRest.memoryMegabytes) / 1024,
    },
    { price: 'lambdaRequests', what: 'invocations by schedules', quantity: runs },
    { price: 'dynamoDbReads', what: 'reads of scheduled runs', quantity: runs * atRest.readsOfRun },
    { price: 'notices', what: 'notices of alarms', quantity: atRest.notices },
    ...(webAcl ? [{ price: 'webAcl', what: 'web ACL', quantity: 1 } as const] : []),
  ];
}
