import { describe, expect, it } from 'vitest';
import type { DynamoDBRecord } from 'aws-lambda';
import { deliverBatch } from '../../infra/local/event-source-mapping.ts';

const record = (SequenceNumber: string): DynamoDBRecord => ({
  eventID: SequenceNumber,
  dynamodb: { SequenceNumber },
});
const names = (records: DynamoDBRecord[]): string => records.map(({ eventID }) => eventID).join('');

/** Delivers the records to a consumer. Returns the delivered batches and the abandoned records. */
async function deliver(consumer: (batch: string) => unknown, records = 'abcd') {
  const seen: string[] = [];
  const discarded: string[] = [];
  await deliverBatch(
    {
      retriesMax: 1,
      invoke: async (records) => {
        seen.push(names(records));
        return consumer(names(records));
      },
      pause: async () => true,
      discard: (records) => discarded.push(names(records)),
    },
    records.split('').map(record),
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
  it('is delivered once if the function accepts it', async () => {
    expect(await deliver(() => null)).toEqual({ seen: ['abcd'], discarded: [] });
  });

  it('of one record is retried, and abandoned after its retries', async () => {
    expect(await deliver(fail, 'a')).toEqual({ seen: ['a', 'a'], discarded: ['a'] });
  });

  it('is halved until the poisoned record is alone, and only that record is abandoned', async () => {
    const { seen, discarded } = await deliver(failOn('c'));
    expect(seen).toEqual(['abcd', 'ab', 'cd', 'c', 'c', 'd']);
    expect(discarded).toEqual(['c']);
  });

  it('continues at the first reported item, and counts earlier ones as done', async () => {
    const answers = [report('d', 'c'), report()];
    const { seen } = await deliver(() => answers.shift());
    expect(seen).toEqual(['abcd', 'cd']);
  });

  it('is abandoned at a record that is reported every time', async () => {
    const { seen, discarded } = await deliver((batch) => (batch.includes('d') ? report('d') : null));
    expect(seen).toEqual(['abcd', 'd', 'd']);
    expect(discarded).toEqual(['d']);
  });

  it('fails as a whole if a reported item is not in the batch', async () => {
    const answers = [report('d', 'z'), null, null];
    expect((await deliver(() => answers.shift())).seen).toEqual(['abcd', 'ab', 'cd']);
  });
});
