/** A table's stream in the emulator, read as Lambda would deliver it. */
import { DescribeTableCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBRecord, DynamoDBStreamEvent } from 'aws-lambda';
import { completeRecord, type StreamPage } from '../../../../infra/local/event-source-mapping.ts';
import { createStreamCalls } from '../../../../infra/local/host/emulator.ts';
import type { Metrics } from '../../../../shared/relay/ports/telemetry.ts';
import { emulatorClient } from '../../../support/emulator.ts';

export interface TableStream {
  /** The records since the last call. */
  next(): Promise<DynamoDBRecord[]>;
}

export async function openStream(endpoint: string, table: string): Promise<TableStream> {
  const { Table } = await emulatorClient(endpoint).send(new DescribeTableCommand({ TableName: table }));
  const StreamArn = Table?.LatestStreamArn ?? '';
  const call = createStreamCalls(endpoint);
  const { StreamDescription } = (await call('DescribeStream', { StreamArn })) as {
    StreamDescription?: { Shards?: { ShardId: string }[] };
  };
  const ShardId = StreamDescription?.Shards?.[0]?.ShardId;
  const start = { StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' };
  let { ShardIterator } = (await call('GetShardIterator', start)) as { ShardIterator?: string | undefined };
  return {
    async next() {
      const records: DynamoDBRecord[] = [];
      for (;;) {
        const read = (await call('GetRecords', { ShardIterator })) as StreamPage;
        ShardIterator = read.NextShardIterator;
        if (!read.Records?.length) return records;
        records.push(...read.Records.map((record) => completeRecord(record, StreamArn)));
      }
    },
  };
}

export const eventOf = (Records: DynamoDBRecord[]): DynamoDBStreamEvent => ({ Records });

export interface CountedMetrics extends Metrics {
  counted: string[];
}

export function countedMetrics(): CountedMetrics {
  const counted: string[] = [];
  return { counted, count: (name) => void counted.push(name) };
}
