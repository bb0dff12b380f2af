/**
 * Stores keys that customers manage: rows of `keys`, and the list of their hashes in `made-keys#<account>` of `runtime`. A
 * change is one transaction. Reads are consistent.
 */
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { KeyRow } from '../../config/rows/key-row.ts';
import type { ManagedKeyStore, SeenKey } from '../../relay/ports/managed-keys.ts';
import {
  attributesOf,
  changeIfUnchanged,
  buildExpressions,
  Table,
  valuesOf,
  type Attributes,
  type TableClient,
} from './table-client.ts';
import { writeUnlessRefused } from './transactions.ts';

const readSeenKey = (stored: Attributes): SeenKey => ({ raw: valuesOf(stored), stored });

export function createManagedKeyStore(client: TableClient, stack: string): ManagedKeyStore {
  const keys = new Table(client, stack, 'keys');
  const runtime = new Table(client, stack, 'runtime');
  /** Applies only if no right of the key has changed since it was read. */
  const buildChange = ({ raw, stored }: SeenKey, attributes?: object) => ({
    ...keys.keyInput({ hash: raw['hash'] }),
    ...changeIfUnchanged({ key: 'hash', names: rights, stored: stored as Attributes }, attributes),
  });
  return {
    async find(hash) {
      const item = await keys.get({ hash });
      return item && readSeenKey(item);
    },
    rows: async (hashes) => (await keys.read(hashes.map((hash) => attributesOf({ hash })))).map(readSeenKey),
    async made(account) {
      const item = await runtime.get(buildListKey(account));
      return (item?.['made']?.L ?? []).flatMap(({ S = [] }) => S);
    },
    async write({ account, maker, made, create, update }) {
      const steps: [changed: 'maker' | 'made' | 'key', step: TransactWriteItem][] = [
        ['maker', { ConditionCheck: buildChange(maker) }],
      ];
      const list = runtime.keyInput(buildListKey(account));
      if (made) steps.push(['made', { Update: { ...list, ...buildListUpdate(made) } }]);
      if (create) steps.push(['key', { Put: { ...keys.putInput(create), ...isNew } }]);
      if (update) steps.push(['key', { Update: buildChange(update.seen, update.attributes) }]);
      const writes = steps.map(([, step]) => step);
      return (await writeUnlessRefused(client, writes)).flatMap((at) => steps[at]?.[0] ?? []);
    },
  };
}

/** Everything that decides what a key may do, and its name. */
const rights = Object.keys(KeyRow.shape);

const buildListKey = (account: string) => ({ id: `made-keys#${account}` });

const isNew = buildExpressions({ ConditionExpression: 'attribute_not_exists(#hash)' });

const buildListUpdate = ({ before, after }: { before: readonly string[]; after: readonly string[] }) =>
  buildExpressions(
    {
      UpdateExpression: 'SET made = :after',
      ConditionExpression: `made = :before${before.length === 0 ? ' OR attribute_not_exists(made)' : ''}`,
    },
    { ':before': before, ':after': after },
  );
