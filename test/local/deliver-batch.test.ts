import { describe, expect, it } from 'vitest';
import type { DynamoDBRecord } from 'aws-lambda';
import { deliverBatch, type DeliveryPolicy } from '../../infra/local/event-source-mapping.ts';

const record = (SequenceNumber: string): DynamoDBRecord => ({
  eventID: SequenceNumber,
  dynamodb: { SequenceNumber },
});
const names = (records: DynamoDBRecord[]): string => records.map(({ eventID }) => eventID).join('');

/** Delivers `abcd` to a consumer and lists the batches it saw and the records that were given up. */
async function deliver(policy: Partial<DeliveryPolicy>, consumer: (batch: string, time: number) => unknown) {
  const seen: string[] = [];
  const discarded: string[] = [];
  await deliverBatch(
    {
      policy: { retriesMax: 2, bisectOnError: false, reportsItemFailures: false, ...policy },
      invoke: async (records) => {
        seen.push(names(records));
        return consumer(names(records), seen.length);
      },
      pause: async () => true,
      discard: (records) => discarded.push(names(records)),
    },
    ['a', 'b', 'c', 'd'].map(record),
  );
  return { seen, discarded };
}

const fail = (): never => {
  throw new Error('no');
};
const failOn = (poison: string) => (batch: string) => (batch.includes(poison) ? fail() : null);
const report = (...items: string[]) => ({
  batchItemFailures: items.map((itemIdentifier) => ({ itemIdentifier })),
});

describe('a batch of stream records', () => {
  it('is delivered once when the function takes it', async () => {
    expect(await deliver({}, () => null)).toEqual({ seen: ['abcd'], discarded: [] });
  });

  it('is tried again as a whole and given up after its retries', async () => {
    expect(await deliver({}, fail)).toEqual({ seen: ['abcd', 'abcd', 'abcd'], discarded: ['abcd'] });
  });

  it('is tried for ever when the retries are -1', async () => {
    const { seen } = await deliver({ retriesMax: -1 }, (_, time) => (time < 50 ? fail() : null));
    expect(seen).toHaveLength(50);
  });

  it('is halved until the poisoned record is alone, and only that one is given up', async () => {
    const { seen, discarded } = await deliver({ bisectOnError: true, retriesMax: 1 }, failOn('c'));
    expect(seen).toEqual(['abcd', 'ab', 'cd', 'c', 'c', 'd']);
    expect(discarded).toEqual(['c']);
  });

  it('goes on at the first reported item, with what came before it done', async () => {
    const answers = [report('c'), report()];
    const { seen } = await deliver({ reportsItemFailures: true }, () => answers.shift());
    expect(seen).toEqual(['abcd', 'cd']);
  });

  it('counts a reported failure as one of its retries', async () => {
    const { seen, discarded } = await deliver({ reportsItemFailures: true }, () => report('d', 'b'));
    expect(seen).toEqual(['abcd', 'bcd', 'bcd']);
    expect(discarded).toEqual(['bcd']);
  });

  it('fails as a whole when a reported item is none of its own', async () => {
    const answers = [report('d', 'z'), null];
    expect((await deliver({ reportsItemFailures: true }, () => answers.shift())).seen).toEqual([
      'abcd',
      'abcd',
    ]);
  });

  it('is not asked for item failures unless the mapping says so', async () => {
    expect((await deliver({}, () => report('a'))).seen).toEqual(['abcd']);
  });
});
