/** Writes and reads several items at once, and classifies errors. Apart from the client, because few calls need it. */
import { randomUUID } from 'node:crypto';
import type { TransactionCanceledException, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { StoreBusy, StoreUnavailable } from '../../relay/ports/store-errors.ts';
import { type Attributes, isInvalid, type TableClient } from './table-client.ts';
import type { CallOptions } from '../aws/aws-calls.ts';

/**
 * `conditions`: positions of writes whose condition failed. `refused`: their items, if requested. `busy`: positions of
 * conflicting or throttled writes. `invalid`: a retry cannot succeed; any other failure may be retried.
 */
export type TransactionReply =
  | { done: true }
  | {
      done: false;
      conditions: number[];
      refused: Attributes[];
      busy: number[];
      invalid: boolean;
      error: unknown;
    };

const busyCodes = new Set(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded']);

export async function writeTransaction(
  client: TableClient,
  TransactItems: TransactWriteItem[],
  options?: CallOptions,
): Promise<TransactionReply> {
  const input = { TransactItems, ClientRequestToken: randomUUID() };
  try {
    await client.call('TransactWriteItems', input, options);
    return { done: true };
  } catch (error) {
    if (isInvalid(error)) return { done: false, conditions: [], refused: [], busy: [], invalid: true, error };
    if (!isCanceled(error)) throw error;
    const reasons = error.CancellationReasons ?? [];
    const findPositions = (is: (code: string) => boolean): number[] =>
      reasons.flatMap(({ Code = '' }, index) => (is(Code) ? [index] : []));
    return {
      done: false,
      error,
      conditions: findPositions((code) => code === 'ConditionalCheckFailed'),
      busy: findPositions((code) => busyCodes.has(code)),
      refused: reasons.flatMap(({ Code, Item }) => (Code === 'ConditionalCheckFailed' && Item ? [Item] : [])),
      invalid: reasons.some(({ Code }) => Code === 'ValidationError'),
    };
  }
}

/** Returns the positions of writes whose condition failed; none: all were written. Throws StoreBusy if another write interferes. */
export async function writeUnlessRefused(
  client: TableClient,
  TransactItems: TransactWriteItem[],
): Promise<number[]> {
  const reply = await writeTransaction(client, TransactItems);
  if (reply.done) return [];
  if (reply.invalid) throw reply.error;
  if (reply.conditions.length > 0) return reply.conditions;
  throw new StoreBusy('Another write was running.', { cause: reply.error });
}

/** By name, because our client throws its own class. */
const isCanceled = (error: unknown): error is TransactionCanceledException =>
  error instanceof Error && error.name === 'TransactionCanceledException';

const readTriesMax = 5;

/** Reads items as of one moment, in the order of keys, again if a write interferes. */
export async function readAsOfOneMoment(
  client: TableClient,
  TableName: string,
  keys: readonly Attributes[],
  options?: CallOptions,
): Promise<(Attributes | undefined)[]> {
  const TransactItems = keys.map((Key) => ({ Get: { TableName, Key } }));
  for (let tries = 1; ; tries += 1) {
    try {
      const { Responses = [] } = await client.call('TransactGetItems', { TransactItems }, options);
      return keys.map((_, at) => Responses[at]?.Item);
    } catch (error) {
      if (!isCanceled(error)) throw error;
      if (tries === readTriesMax)
        throw new StoreUnavailable('The items changed too fast to be read.', { cause: error });
    }
  }
}
