/** Reads the daily sums of accounts and channels for operators, and corrects sums. */
import { paginateQuery, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { LedgerReader } from '../../../operate/ledger-reader.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import type { Attributes } from '../attributes.ts';
import { conditionalCall } from '../dynamo-client.ts';
import type { Store } from '../operator-client.ts';
import { correction, dailySumOf } from '../daily-attributes.ts';
import { pages, reading } from './table-pages.ts';

export function dynamoDailyReader(store: Store): Pick<LedgerReader, 'daily' | 'addToDaily'> {
  const { client, explained, target } = store;
  return {
    async *daily(id, { from, to } = allDays) {
      for await (const page of dailyItems(store, id, [`day#${from}`, `day#${to}${afterAll}`]))
        yield page.map((item) => reading(item, `daily ${id} ${item['period']?.S}`, dailySumOf));
    },
    async addToDaily(difference) {
      const command = new UpdateItemCommand(correction(target.stack, difference));
      return (await explained(conditionalCall(() => client.send(command)))).done;
    },
  };
}

const allDays = { from: '', to: '9' };

/** Sorts after every character of a name. */
export const afterAll = '\u{10FFFF}';

/** The items of a partition between two sort keys, both inclusive. */
export const dailyItems = (
  { client, explained, target }: Store,
  id: string,
  [from, to]: readonly [string, string],
): AsyncIterable<Attributes[]> =>
  pages(
    paginateQuery(
      { client },
      {
        TableName: physicalTableName(target.stack, 'daily'),
        KeyConditionExpression: 'id = :id AND period BETWEEN :from AND :to',
        ExpressionAttributeValues: marshall({ ':id': id, ':from': from, ':to': to }),
        ConsistentRead: true,
      },
    ),
    explained,
  );
