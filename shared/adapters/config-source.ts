import { paginateScan, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { compileSnapshot } from '../config/compile.ts';
import type { Snapshot } from '../config/snapshot.ts';
import type { Clock, ConfigSource, Log } from '../relay/ports.ts';
import { StoreUnavailable } from '../relay/ports.ts';
import { storeCall } from './dynamo.ts';
import { physicalTableName, type TableName } from './table-schema.ts';

/** With the edge's 5 s of caching, an edit of a table is visible in well under 15 s. */
const freshMs = 8000;
/** How long a request waits for a newer configuration when there is an older one to serve it with. */
const patienceMs = 300;

export interface ConfigSourceParts {
  client: DynamoDBDocumentClient;
  clock: Clock;
  log: Log;
  stack: string;
  local: boolean;
}

interface Held {
  snapshot: Snapshot;
  content: string;
  /** Epoch milliseconds at which the read of the tables began. */
  checkedAt: number;
}

/** The four tables that operators edit, scanned and compiled; concurrent callers share one read. */
export function scannedConfig(parts: ConfigSourceParts): ConfigSource {
  const { clock, log } = parts;
  let held: Held | undefined;
  let reading: Promise<Held> | undefined;

  const read = (): Promise<Held> => {
    reading ??= readTables(parts)
      .then((read) => (held = held?.content === read.content ? { ...held, checkedAt: read.checkedAt } : read))
      .finally(() => {
        reading = undefined;
      });
    return reading;
  };

  const readInTime = async (): Promise<void> => {
    const waiting = new AbortController();
    const refresh = read().catch((error: unknown) => log.fault('config', error));
    await Promise.race([refresh, clock.sleep(patienceMs, waiting.signal)]);
    waiting.abort();
  };

  return {
    async current() {
      if (held) {
        const older = held;
        if (clock.now() - older.checkedAt >= freshMs) await readInTime();
        return held.snapshot;
      }
      try {
        return (await read()).snapshot;
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error;
        log.fault('config', error);
        throw new StoreUnavailable('The configuration cannot be read.', { cause: error });
      }
    },
  };
}

async function readTables(parts: ConfigSourceParts): Promise<Held> {
  const checkedAt = parts.clock.now();
  const [channels, charges, plans, settings] = await storeCall(() =>
    Promise.all([
      scan(parts, 'channels'),
      scan(parts, 'charges'),
      scan(parts, 'plans'),
      scan(parts, 'settings'),
    ]),
  );
  const publishedAt = Math.floor(parts.clock.now() / 1000);
  const rows = { channels, charges, plans, settings };
  const { snapshot } = compileSnapshot(rows, { local: parts.local, publishedAt });
  return { snapshot, content: canonicalJson({ ...snapshot, publishedAt: 0 }), checkedAt };
}

async function scan({ client, stack }: ConfigSourceParts, table: TableName): Promise<unknown[]> {
  const rows: unknown[] = [];
  const input = { TableName: physicalTableName(stack, table), ConsistentRead: true };
  for await (const page of paginateScan({ client }, input)) rows.push(...(page.Items ?? []));
  return rows;
}

/** Equal contents give equal texts, however DynamoDB ordered the attributes of a map. */
const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_name, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
