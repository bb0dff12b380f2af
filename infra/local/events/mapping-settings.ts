import type { LocalFunction } from '../lambda/local-function.ts';
import type { DeliveryPolicy } from './deliver-batch.ts';
import { createFilter, type Filter } from './filter.ts';

export type StartingPosition = 'TRIM_HORIZON' | 'LATEST';

export interface MappingSettings {
  /** Logical id, under which the read position is stored. */
  id: string;
  streamArn: string;
  startingPosition: StartingPosition;
  batchSize: number;
  policy: DeliveryPolicy;
  filter: Filter;
  target: LocalFunction;
}

/**
 * The resolved properties of AWS::Lambda::EventSourceMapping that are emulated. Batching windows only delay,
 * so they are ignored.
 */
export interface MappingProperties {
  EventSourceArn: string;
  StartingPosition?: StartingPosition;
  BatchSize?: number;
  BisectBatchOnFunctionError?: boolean;
  MaximumRetryAttempts?: number;
  FunctionResponseTypes?: string[];
  FilterCriteria?: { Filters?: { Pattern: string }[] };
  Enabled?: boolean;
}

/** Applies Lambda's defaults for DynamoDB streams. Throws StartError for an unsupported filter. */
export function readMapping(
  id: string,
  properties: MappingProperties,
  target: LocalFunction,
): MappingSettings {
  return {
    id,
    target,
    streamArn: properties.EventSourceArn,
    startingPosition: properties.StartingPosition ?? 'TRIM_HORIZON',
    batchSize: properties.BatchSize ?? 100,
    filter: createFilter((properties.FilterCriteria?.Filters ?? []).map(({ Pattern }) => Pattern)),
    policy: {
      retriesMax: properties.MaximumRetryAttempts ?? -1,
      bisectOnError: properties.BisectBatchOnFunctionError ?? false,
      reportsItemFailures: properties.FunctionResponseTypes?.includes('ReportBatchItemFailures') ?? false,
    },
  };
}
