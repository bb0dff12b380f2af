import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  type GetShardIteratorInput,
} from '@aws-sdk/client-dynamodb-streams';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../host/log.ts';
import type { Checkpoints } from './checkpoints.ts';
import { deliverBatch, type Delivery } from './deliver-batch.ts';
import type { MappingSettings, StartingPosition } from './mapping-settings.ts';
import { toStreamRecord, type StreamRecord } from './table-stream-record.ts';

// Lambda polls each shard four times a second.
const pollIntervalMs = 250;
const firstRetryMs = 100;
const longestRetryMs = 5000;

export interface MappingParts {
  settings: MappingSettings;
  client: DynamoDBStreamsClient;
  checkpoints: Checkpoints;
  log: Log;
}

/** Reads one table's stream and calls its function with the batches of each shard in order. */
export class EventSourceMapping {
  readonly #parts: MappingParts;
  readonly #stopping = new AbortController();
  readonly #shards = new Map<string, Promise<void>>();
  #polling: Promise<void> | undefined;

  constructor(parts: MappingParts) {
    this.#parts = parts;
  }

  /** Resolves when the starting positions are set. Every record written later is delivered. */
  async start(): Promise<void> {
    await this.#findShards(this.#parts.settings.startingPosition);
    this.#polling = this.#watchShards();
  }

  /** Resolves when the running requests have ended. A batch in delivery counts as not delivered. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#polling;
    await Promise.all(this.#shards.values());
  }

  async #watchShards(): Promise<void> {
    while (await this.#wait(20 * pollIntervalMs))
      // A new shard continues an earlier one, so it is read from its first record.
      await this.#findShards('TRIM_HORIZON').catch((error) => this.#complain(error));
  }

  async #findShards(startingPosition: StartingPosition): Promise<void> {
    const { client, settings } = this.#parts;
    const { StreamDescription } = await client.send(
      new DescribeStreamCommand({ StreamArn: settings.streamArn }),
    );
    for (const { ShardId: shard } of StreamDescription?.Shards ?? []) {
      if (shard === undefined || this.#shards.has(shard)) continue;
      const iterator = await this.#firstIterator(shard, startingPosition);
      this.#shards.set(shard, this.#readShard(shard, iterator));
    }
  }

  async #firstIterator(shard: string, startingPosition: StartingPosition): Promise<string | undefined> {
    const { client, checkpoints, settings } = this.#parts;
    const position = checkpoints.get(settings.id, shard);
    const iterator = async (from: Pick<GetShardIteratorInput, 'ShardIteratorType' | 'SequenceNumber'>) => {
      const place = { StreamArn: settings.streamArn, ShardId: shard, ...from };
      return (await client.send(new GetShardIteratorCommand(place))).ShardIterator;
    };
    if (position === undefined) return iterator({ ShardIteratorType: startingPosition });
    // The stream refuses a position older than its oldest record; then reading starts at that record.
    return iterator({ ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', SequenceNumber: position }).catch(() =>
      iterator({ ShardIteratorType: 'TRIM_HORIZON' }),
    );
  }

  async #readShard(shard: string, first: string | undefined): Promise<void> {
    const { client, settings } = this.#parts;
    let iterator = first;
    while (iterator !== undefined && !this.#stopping.signal.aborted) {
      try {
        const read = await client.send(
          new GetRecordsCommand({ ShardIterator: iterator, Limit: settings.batchSize }),
        );
        const records = (read.Records ?? []).map((record) => toStreamRecord(record, settings.streamArn));
        await this.#deliver(shard, records);
        iterator = read.NextShardIterator;
        if (records.length === 0) await this.#wait(pollIntervalMs);
      } catch (error) {
        this.#complain(error);
        if (!(await this.#wait(longestRetryMs))) return;
        iterator = await this.#firstIterator(shard, 'TRIM_HORIZON').catch(() => iterator);
      }
    }
  }

  async #deliver(shard: string, records: StreamRecord[]): Promise<void> {
    const last = records.at(-1);
    if (last === undefined) return;
    const { settings, checkpoints } = this.#parts;
    const wanted = records.filter(settings.filter);
    if (wanted.length > 0) await deliverBatch(this.#delivery(), wanted);
    if (!this.#stopping.signal.aborted) checkpoints.set(settings.id, shard, last.dynamodb.SequenceNumber);
  }

  #delivery(): Delivery {
    const { target, policy } = this.#parts.settings;
    return {
      policy,
      invoke: (records) => target.call({ Records: records }),
      pause: (attempt) => this.#wait(Math.min(firstRetryMs * 2 ** (attempt - 1), longestRetryMs)),
      discard: (records, reason) =>
        this.#parts.log(
          `[${target.settings.name}] gave up ${records.length} stream records ` +
            `(${records[0]?.dynamodb.SequenceNumber} to ${records.at(-1)?.dynamodb.SequenceNumber}): ${reason}`,
        ),
    };
  }

  /** Resolves to false when the mapping is stopping. */
  async #wait(milliseconds: number): Promise<boolean> {
    const { signal } = this.#stopping;
    await sleep(milliseconds, undefined, { signal }).catch(() => {});
    return !signal.aborted;
  }

  #complain(error: unknown): void {
    const { settings, log } = this.#parts;
    if (!this.#stopping.signal.aborted)
      log(`[${settings.target.settings.name}] reading the stream failed: ${(error as Error).message}`);
  }
}
