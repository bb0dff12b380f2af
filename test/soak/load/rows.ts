/** The rows that operators would write before the load starts: channels, prices, keys and grants. */
import { createHash } from 'node:crypto';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PriceVersion, Row } from '../checker/observations.ts';

export const soloModels = ['soak-solo-1', 'soak-solo-2', 'soak-solo-3', 'soak-solo-4'] as const;
export const limitedModels = ['soak-limited-1', 'soak-limited-2'] as const;
export const steadyModels = ['soak-steady-1', 'soak-steady-2'] as const;
/** Served by two channels: the second recovers failed attempts of the first. */
export const pairModel = 'soak-pair';
export const callsModel = 'soak-calls';
export const freeModel = 'soak-free';
export const lateModel = 'soak-late';
export const closedModel = 'soak-closed';

const accounts = ['soak-a', 'soak-b', 'soak-c', 'soak-d'];
const keysEach = 6;
const preparedWithinMs = 60_000;
export const grantYuan = 100_000;

export interface SoakKey {
  account: string;
  text: string;
  hash: string;
}

export const soakKeys: readonly SoakKey[] = accounts.flatMap((account) =>
  Array.from({ length: keysEach }, (_, number) => {
    const text = `sk-${account}-${number}`;
    return { account, text, hash: createHash('sha256').update(text).digest('hex') };
  }),
);

export const granted: ReadonlyMap<string, number> = new Map(accounts.map((account) => [account, grantYuan]));

export type TableRow = [string, Row];

export function channelRow(
  id: string,
  endpoint: string,
  models: readonly string[],
  more: Row = {},
): TableRow {
  const row = {
    id,
    endpoint,
    models,
    state: true,
    connect_seconds: 2,
    first_content_seconds: 4,
    idle_seconds: 4,
  };
  return ['channels', { ...row, total_seconds: 120, ...more }];
}

const priced = [...soloModels, ...limitedModels, ...steadyModels, pairModel, lateModel, closedModel];

export const chargeRow = ({ model, id, type, input, output }: PriceVersion): TableRow => [
  'charges',
  { id, type, models: [model], ...(input !== undefined && { input: Number(input) }), output: Number(output) },
];

/** The first price of each model. */
export const firstPrices = (): PriceVersion[] => [
  ...priced.map((model, at): PriceVersion => {
    const [input, output] = [0.001, 0.002];
    return { id: at + 1, type: 'token-billing', models: [model], input, output, model, writtenMs: 0 };
  }),
  { id: 100, type: 'times-billing', models: [callsModel], output: 0.05, model: callsModel, writtenMs: 0 },
];

export interface RowsOptions {
  endpointFor: (this: void, channel: string) => string;
  /** An address at which nobody listens. */
  closedEndpoint: string;
  prices: readonly PriceVersion[];
  requestSeconds: number;
}

export const pairChannels = (endpointFor: RowsOptions['endpointFor']): [TableRow, TableRow] => [
  channelRow('pair-a', endpointFor('pair-a'), [pairModel]),
  channelRow('pair-b', endpointFor('pair-b'), [pairModel]),
];

export function soakRows({ endpointFor, closedEndpoint, prices, requestSeconds }: RowsOptions): TableRow[] {
  const single = [...soloModels, ...limitedModels, ...steadyModels, callsModel, freeModel];
  return [
    ...single.map((model) => channelRow(model, endpointFor(model), [model])),
    ...pairChannels(endpointFor),
    channelRow(lateModel, endpointFor(lateModel), [lateModel], { first_content_seconds: 60 }),
    channelRow(closedModel, closedEndpoint, [closedModel]),
    ...prices.map(chargeRow),
    ['settings', { name: 'limits', value: { request_seconds: requestSeconds } }],
    ...soakKeys.map(({ account, hash }): TableRow => ['keys', { hash, account }]),
    ...accounts.map((account): TableRow => [
      'grants',
      { account, grant_id: 'soak', amount: grantYuan, reason: 'soak' },
    ]),
  ];
}

export const put = (documents: DynamoDBDocumentClient, [table, Item]: TableRow): Promise<unknown> =>
  documents.send(new PutCommand({ TableName: `relay-${table}`, Item }));

/** Writes the rows and waits until balances exist and models are listed. */
export async function prepare(
  { documents, origin }: { documents: DynamoDBDocumentClient; origin: string },
  rows: TableRow[],
  interruption: AbortSignal,
): Promise<void> {
  for (const row of rows) await put(documents, row);
  const untilMs = Date.now() + preparedWithinMs;
  const wanted = [...soloModels, pairModel, closedModel, freeModel];
  for (;;) {
    const { data = [] } = (await fetch(`${origin}/v1/models`)
      .then((answer) => answer.json())
      .catch(() => ({}))) as { data?: { id: string }[] };
    const isListed = wanted.every((model) => data.some(({ id }) => id === model));
    if (isListed && (await hasMoney(documents))) return;
    interruption.throwIfAborted();
    if (Date.now() > untilMs) throw new Error('the rows of the soak are not in force after a minute');
    await sleep(200);
  }
}

async function hasMoney(documents: DynamoDBDocumentClient): Promise<boolean> {
  const items = await Promise.all(
    accounts.map((account) =>
      documents.send(new GetCommand({ TableName: 'relay-quotas', Key: { account } })),
    ),
  );
  return items.every(({ Item }) => Number(Item?.['granted'] ?? 0) > 0);
}
