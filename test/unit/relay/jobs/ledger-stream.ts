/** A table's stream in the emulator, read as Lambda would deliver it. */
import { DescribeTableCommand } from '@aws-sdk/client-dynamodb';
import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
} from '@aws-sdk/client-dynamodb-streams';
import type { DynamoDBRecord, DynamoDBStreamEvent } from 'aws-lambda';
import { convertStreamRecord } from '../../../../infra/local/event-source-mapping.ts';
import type { Metrics } from '../../../../shared/relay/ports/telemetry.ts';
import { emulatorClient } from '../../../support/emulator.ts';
import { localAccess } from '../../adapters/dynamodb/store.ts';

export interface TableStream {
  /** The records since the last call. */
  next(): Promise<DynamoDBRecord[]>;
}

export async function openStream(endpoint: string, table: string): Promise<TableStream> {
  const { Table } = await emulatorClient(endpoint).send(new DescribeTableCommand({ TableName: table }));
  const StreamArn = Table?.LatestStreamArn ?? '';
  const client = new DynamoDBStreamsClient({ endpoint, ...localAccess });
  const { StreamDescription } = await client.send(new DescribeStreamCommand({ StreamArn }));
  const ShardId = StreamDescription?.Shards?.[0]?.ShardId;
  const start = { StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' } as const;
  let { ShardIterator } = await client.send(new GetShardIteratorCommand(start));
  return {
    async next() {
      const records: DynamoDBRecord[] = [];
      for (;;) {
        const read = await client.send(new GetRecordsCommand({ ShardIterator }));
        ShardIterator = read.NextShardIterator;
        if (!read.Records?.length) return records;
        records.push(...read.Records.map((record) => convertStreamRecord(record, StreamArn)));
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
