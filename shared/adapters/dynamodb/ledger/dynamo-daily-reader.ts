/** Reads the daily sums for operators, and corrects them. */
import { paginateQuery, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { LedgerReader } from '../../../operate/ledger-reader.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import { conditionalCall } from '../dynamo-client.ts';
import type { Store } from '../operator-client.ts';
import { correction, dailySumOf } from '../daily-attributes.ts';
import { pages, reading } from './table-pages.ts';

export function dynamoDailyReader({
  client,
  explained,
  target,
}: Store): Pick<LedgerReader, 'daily' | 'addToDaily'> {
  return {
    async *daily(id) {
      const input = {
        TableName: physicalTableName(target.stack, 'daily'),
        KeyConditionExpression: 'id = :id AND begins_with(period, :day)',
        ExpressionAttributeValues: marshall({ ':id': id, ':day': 'day#' }),
        ConsistentRead: true,
      };
      for await (const page of pages(paginateQuery({ client }, input), explained))
        yield page.map((item) => reading(item, `daily ${id} ${item['period']?.S}`, dailySumOf));
    },
    async addToDaily(difference) {
      const command = new UpdateItemCommand(correction(target.stack, difference));
      return (await explained(conditionalCall(() => client.send(command)))).done;
    },
  };
}
