/** What a month of calls takes of each service. Knows no prices. */
import { atRest } from './background-amounts.ts';
import { perCall } from './call-amounts.ts';
import { streamUsage, tableUsage } from './table-usage.ts';
import { gigabyte, type Taken } from './taken.ts';
import type { Workload } from './workload.ts';

const answerBytes = ({ chunks }: Workload): number => chunks * perCall.chunkBytes + perCall.answerBytes;
const sentBytes = ({ requestBytes }: Workload): number => requestBytes + perCall.requestHeaderBytes;

/** Lambda and the secrets. */
function functionUsage(workload: Workload): Taken[] {
  const { calls, seconds, memoryMegabytes } = workload;
  const billedSeconds = seconds + perCall.addedSeconds + perCall.startSeconds;
  const streamedBytes = Math.max(0, answerBytes(workload) - 6 * 1024 ** 2);
  return [
    {
      price: 'lambdaCompute',
      what: `${memoryMegabytes} MB for ${billedSeconds} s a call`,
      quantity: (calls * billedSeconds * memoryMegabytes) / 1024,
    },
    { price: 'lambdaRequests', what: 'invocations by calls', quantity: calls },
    {
      price: 'lambdaStreaming',
      what: 'answers beyond 6 MB',
      quantity: (calls * streamedBytes) / gigabyte,
    },
    {
      price: 'secretReads',
      what: 'secrets of channels, by busy environments',
      quantity: (calls * seconds) / perCall.secretSeconds,
    },
  ];
}

function networkUsage(workload: Workload): Taken[] {
  const { calls, internetUpstream } = workload;
  const upGigabytes = (calls * sentBytes(workload)) / gigabyte;
  const upstream: Taken = { price: 'internet', what: 'requests to upstreams', quantity: upGigabytes };
  return [
    ...(internetUpstream ? [upstream] : []),
    {
      price: 'cloudFrontOut',
      what: 'answers to clients',
      quantity: (calls * answerBytes(workload)) / gigabyte,
    },
    { price: 'cloudFrontRequests', what: 'requests of clients', quantity: calls },
    { price: 'cloudFrontToOrigin', what: 'request bodies to the function', quantity: upGigabytes },
  ];
}

function observedUsage({ calls, callsPerSecond, channels, failureShare }: Workload): Taken[] {
  const bytes = calls * ((1 - failureShare) * perCall.logBytes + failureShare * perCall.failureLogBytes);
  const busyShare = calls === 0 ? 0 : Math.min(1, calls / callsPerSecond / 3600 / atRest.hours);
  return [
    { price: 'logs', what: 'a line for each call', quantity: bytes / gigabyte },
    {
      price: 'logStorage',
      what: 'logs of a month',
      quantity: (bytes / gigabyte) * atRest.logCompression,
    },
    {
      price: 'metrics',
      what: 'metrics in hours with traffic',
      quantity: busyShare * (atRest.stackMetrics + channels * atRest.channelMetrics),
    },
  ];
}

export const trafficUsage = (workload: Workload): Taken[] => [
  ...functionUsage(workload),
  ...networkUsage(workload),
  ...tableUsage(workload),
  ...streamUsage(workload),
  ...observedUsage(workload),
  ...(workload.webAcl
    ? [{ price: 'webAclRequests', what: 'requests inspected', quantity: workload.calls } as const]
    : []),
];
