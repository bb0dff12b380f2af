/** Reads the tables as they are stored. */
import { ScanCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { Hold, Row, TablesSeen } from '../checker/observations.ts';

async function rowsOf(documents: DynamoDBDocumentClient, table: string): Promise<Row[]> {
  const rows: Row[] = [];
  let from: Row | undefined;
  do {
    const { Items = [], LastEvaluatedKey } = await documents.send(
      new ScanCommand({
        TableName: `relay-${table}`,
        ConsistentRead: true,
        ...(from && { ExclusiveStartKey: from }),
      }),
    );
    rows.push(...Items);
    from = LastEvaluatedKey;
  } while (from);
  return rows;
}

export async function readTables(documents: DynamoDBDocumentClient): Promise<TablesSeen> {
  const [quotas, ledger, daily] = await Promise.all([
    rowsOf(documents, 'quotas'),
    rowsOf(documents, 'ledger'),
    rowsOf(documents, 'daily'),
  ]);
  return { quotas, ledger, daily };
}

/** The open entries of `quotas` during a soak. */
export class HoldLog {
  readonly holds = new Map<string, Hold>();
  readonly #documents: DynamoDBDocumentClient;

  constructor(documents: DynamoDBDocumentClient) {
    this.#documents = documents;
  }

  /** Resolves with the reservations that are open now. */
  async read(): Promise<Hold[]> {
    const open: Hold[] = [];
    for (const item of await rowsOf(this.#documents, 'quotas')) {
      const entries = (item['open'] as Record<string, unknown[]> | undefined) ?? {};
      for (const [id, [leaseEnd]] of Object.entries(entries)) {
        const hold = {
          id,
          account: String(item['account']),
          leaseEnd: Number(leaseEnd),
          lastSeenMs: Date.now(),
        };
        this.holds.set(id, hold);
        open.push(hold);
      }
    }
    return open;
  }
}
