/** Each thing that operators are told about: a metric and the value at which it rings. */
import { Duration } from 'aws-cdk-lib';
import { Metric } from 'aws-cdk-lib/aws-cloudwatch';
import type { EventSourceMapping } from 'aws-cdk-lib/aws-lambda';
import type { RelayFunction } from './relay-function.ts';

export interface Watch {
  id: string;
  description: string;
  metric: Metric;
  /** The value within five minutes that rings. */
  threshold: number;
}

const period = Duration.minutes(5);
const iteratorAgeMax = Duration.minutes(5);

export function functionWatches(name: string, relayFunction: RelayFunction): Watch[] {
  const { lambda } = relayFunction;
  const watches: Watch[] = [
    {
      id: `${name}Errors`,
      description: `Function ${name} crashed or timed out: its log group says why`,
      metric: lambda.metricErrors({ period, statistic: 'Sum' }),
      threshold: 1,
    },
    {
      id: `${name}Throttles`,
      description: `Function ${name} was refused an environment: the account's concurrency is used up`,
      metric: lambda.metricThrottles({ period, statistic: 'Sum' }),
      threshold: 1,
    },
  ];
  if (relayFunction.url === undefined) return watches;
  const serverErrors: Watch = {
    id: `${name}ServerErrors`,
    description: `Function ${name} answered with many 5xx: upstreams or tables cannot be reached`,
    metric: lambda.metric('Url5xxCount', { period, statistic: 'Sum' }),
    threshold: 20,
  };
  return [...watches, serverErrors];
}

/** A stream that is not read in time, and records that were given up. */
export function streamWatches(name: string, { lambda }: RelayFunction, mapping: EventSourceMapping): Watch[] {
  return [
    {
      id: `${name}IteratorAge`,
      description: `Function ${name} is behind its stream by minutes: its log group says what fails`,
      metric: lambda.metric('IteratorAge', { period, statistic: 'Maximum' }),
      threshold: iteratorAgeMax.toMilliseconds(),
    },
    {
      id: `${name}GivenUp`,
      description: `Records of the stream of function ${name} were given up: they are in the bucket of stream failures`,
      metric: new Metric({
        namespace: 'AWS/Lambda',
        metricName: 'OnFailureDestinationDeliveredEventCount',
        dimensionsMap: { EventSourceMappingUUID: mapping.eventSourceMappingId },
        period,
        statistic: 'Sum',
      }),
      threshold: 1,
    },
  ];
}

/** The relay's own metrics, as `shared/relay/ledger-keeper-ports.ts` names them. */
const moneyMetrics = {
  ConservationBroken:
    'The books of an account do not balance: look for conservation_broken in the log of function ledger',
  LedgerPoisoned: 'A record of quotas cannot be read, so a ledger row is missing: look for ledger_poisoned',
  GrantPoisoned: 'A grant can never be applied: look for grant_poisoned in the log of function grants',
  ReservationPoisoned:
    'The open reservations of an account cannot be read: look for reservation_poisoned in the log of function sweeper',
};

export function moneyWatches(stackName: string): Watch[] {
  return Object.entries(moneyMetrics).map(([metricName, description]) => ({
    id: metricName,
    description,
    metric: new Metric({
      namespace: 'relay',
      metricName,
      dimensionsMap: { service: stackName },
      period,
      statistic: 'Sum',
    }),
    threshold: 1,
  }));
}
