/**
 * Rows of `keys` that customers write, and the item `made-keys#<account>` of `runtime`, which has the hashes of all of an account
 * that are theirs. All writes of a change are one transaction. Reads are consistent.
 */
import type { AttributeValue, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { KeyChange, ManagedKeyStore, SeenKey } from '../../relay/ports/managed-keys.ts';
import { StoreBusy } from '../../relay/ports/store-errors.ts';
import {
  attributesOf,
  expressed,
  setAndRemove,
  Table,
  valuesOf,
  type Attributes,
  type TableClient,
} from './table-client.ts';
import { transactionCall } from './transactions.ts';

/** All that decides whether a key works and what it may. */
const rights =
  'account agent budget enabled expires_at made_by manage max_concurrency models name official rpm store'.split(
    ' ',
  );

const seenOf = (stored: Attributes): SeenKey => ({ raw: valuesOf(stored), stored });

export function dynamoManagedKeys(client: TableClient, stack: string): ManagedKeyStore {
  const keys = new Table(client, stack, 'keys');
  const runtime = new Table(client, stack, 'runtime');
  return {
    async find(hash) {
      const item = await keys.get({ hash });
      return item && seenOf(item);
    },
    rows: async (hashes) => (await keys.read(hashes.map((hash) => attributesOf({ hash })))).map(seenOf),
    made: async (account) => (await runtime.get(madeKey(account)))?.['made']?.SS ?? [],
    async write({ account, maker, made, create, update }) {
      const steps: [changed: 'maker' | 'made' | 'key', step: TransactWriteItem][] = [
        ['maker', { ConditionCheck: { ...atKey(keys, maker), ...asSeen(maker) } }],
      ];
      if (made) steps.push(['made', { Update: { ...runtime.at(madeKey(account)), ...madeUpdate(made) } }]);
      if (create) steps.push(['key', { Put: { ...keys.whole(create), ...isNew } }]);
      if (update) steps.push(['key', { Update: { ...atKey(keys, update.seen), ...keyUpdate(update) } }]);
      const reply = await transactionCall(
        client,
        steps.map(([, step]) => step),
      );
      if (reply.done) return [];
      if (reply.invalid) throw reply.error;
      if (reply.conditions.length === 0)
        throw new StoreBusy('Another write was running.', { cause: reply.error });
      return reply.conditions.flatMap((at) => steps[at]?.[0] ?? []);
    },
  };
}

const madeKey = (account: string) => ({ id: `made-keys#${account}` });

const isNew = expressed({ ConditionExpression: 'attribute_not_exists(#hash)' });

const atKey = (keys: Table, { raw }: SeenKey) => keys.at({ hash: raw['hash'] });

function asSeen({ stored }: SeenKey) {
  const has = (name: string): AttributeValue | undefined => (stored as Attributes)[name];
  const found = rights.flatMap((name) => (has(name) ? [[`:${name}`, has(name) as AttributeValue]] : []));
  return {
    ConditionExpression: rights
      .map((name) => (has(name) ? `#${name} = :${name}` : `attribute_not_exists(#${name})`))
      .join(' AND '),
    ExpressionAttributeNames: Object.fromEntries(rights.map((name) => [`#${name}`, name])),
    ExpressionAttributeValues: Object.fromEntries(found) as Attributes,
  };
}

function keyUpdate({ seen, attributes }: { seen: SeenKey; attributes: object }) {
  const { ExpressionAttributeNames: names, ExpressionAttributeValues: values, ...condition } = asSeen(seen);
  const set = attributesOf(attributes);
  const all = Object.keys(attributes);
  return {
    ...condition,
    UpdateExpression: setAndRemove(
      all.flatMap((name) => (set[name] ? `#${name} = :new_${name}` : [])),
      all.flatMap((name) => (set[name] ? [] : `#${name}`)),
    ),
    ExpressionAttributeNames: { ...names, ...Object.fromEntries(all.map((name) => [`#${name}`, name])) },
    ExpressionAttributeValues: {
      ...values,
      ...Object.fromEntries(Object.entries(set).map(([name, value]) => [`:new_${name}`, value])),
    },
  };
}

/** Writers of different keys come in each other's way only where one takes the place of another. */
function madeUpdate({ before, after, most }: NonNullable<KeyChange['made']>) {
  const added = after.filter((hash) => !before.includes(hash));
  const removed = before.filter((hash) => !after.includes(hash));
  if (added.length === 0)
    return expressed({ UpdateExpression: 'DELETE made :removed' }, { ':removed': new Set(removed) });
  if (removed.length === 0)
    return expressed(
      {
        UpdateExpression: 'ADD made :added',
        ConditionExpression: 'attribute_not_exists(made) OR size(made) < :most',
      },
      { ':added': new Set(added), ':most': most },
    );
  return expressed(
    { UpdateExpression: 'SET made = :after', ConditionExpression: 'made = :before' },
    { ':after': new Set(after), ':before': new Set(before) },
  );
}
