/**
 * The parts of DynamoDB that the sums depend on, in virtual time: partitions that throttle, and transactions that
 * conflict. The emulator has neither. Where AWS documents nothing, the model is conservative:
 *
 * - A partition writes 1,000 units and reads 3,000 a second, with one second of burst instead of the usual 300. Each
 *   table keeps its first partitions: none is split for heat, no item is isolated, and one partition key never has more
 *   than one.
 * - A transaction locks its items from its arrival to its end, which takes 8 ms, 0.4 ms for each item, and 5 ms more on
 *   average. A conflicting transaction pays for preparing all of its items, and one that fails a condition for a whole
 *   write.
 */
import { TransactionCanceledException } from '@aws-sdk/client-dynamodb';
import type { AttributeValue, CancellationReason, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { formatYuan, parseYuan } from '../../../shared/billing/money.ts';
import type { Clock } from '../../../shared/relay/ports/host.ts';
import { StoreUnavailable } from '../../../shared/relay/ports/store-errors.ts';
import type {
  Attributes,
  TableClient,
  TableOperations,
} from '../../../shared/adapters/dynamodb/table-client.ts';
import { tableSchemas } from '../../../shared/tables/table-schemas.ts';
import { hash53 } from '../../../shared/wire/ids.ts';
import { Bucket, writeUnitsPerSecond } from './bucket.ts';

const unitBytes = 1_024;

interface TablesOptions {
  clock: Clock;
  random: () => number;
  /** Partitions of each table and of its index. */
  partitions: number;
  /** The chance that the reply of an applied write is lost. */
  lost?: number;
  /** Throttles every write while true. */
  isThrottled?: () => boolean;
}

/** A write in a transaction, or alone. */
interface Step {
  table: string;
  key: string;
  /** The partition key. */
  id: string;
  units: number;
  isRefused(item: Attributes | undefined): boolean;
  written(item: Attributes | undefined): Attributes | undefined;
}

export class ModelledTables implements TableClient {
  readonly #options: TablesOptions;
  readonly #tables = new Map<string, Map<string, Attributes>>();
  /** The items of a table by partition key, for queries. */
  readonly #partitions = new Map<string, Map<string, Attributes>>();
  readonly #buckets = new Map<string, Bucket>();
  readonly #taken = new Set<string>();
  /** `wasted` counts units of cancelled transactions. */
  readonly counts = { transactions: 0, conflicts: 0, throttled: 0, refused: 0, lost: 0, units: 0, wasted: 0 };
  /** The items at which transactions conflicted, with counts. */
  readonly conflictsBy = new Map<string, number>();
  /** Called with each item that a committed transaction put or updated. */
  onWrite: (table: string, item: Attributes) => void = () => {};
  constructor(options: TablesOptions) {
    this.#options = options;
  }

  rows(table: string): Attributes[] {
    return [...this.#table(`relay-${table}`).values()];
  }

  async call<Name extends keyof TableOperations>(
    operation: Name,
    input: TableOperations[Name]['input'],
  ): Promise<TableOperations[Name]['output']> {
    return this.#reply(operation, input);
  }

  async #reply(operation: string, input: object): Promise<object> {
    if (operation === 'TransactWriteItems') {
      const { TransactItems } = input as TableOperations['TransactWriteItems']['input'];
      await this.#transact((TransactItems ?? []).map(stepOf));
      return {};
    }
    if (operation === 'UpdateItem' || operation === 'PutItem') {
      await this.#alone(
        stepOf(operation === 'UpdateItem' ? { Update: input as never } : { Put: input as never }),
      );
      return {};
    }
    if (operation === 'Query') return { Items: this.#query(input as TableOperations['Query']['input']) };
    if (operation === 'BatchGetItem') {
      const { RequestItems = {} } = input as TableOperations['BatchGetItem']['input'];
      const Responses = Object.fromEntries(
        Object.entries(RequestItems).map(([table, { Keys = [] }]) => [
          table,
          Keys.map((Key) => this.#table(table).get(keyOf(table, Key))).filter((item) => item !== undefined),
        ]),
      );
      return { Responses };
    }
    throw new Error(`not modelled: ${operation}`);
  }

  async #transact(steps: Step[]): Promise<void> {
    const { clock, random } = this.#options;
    const { counts } = this;
    counts.transactions += 1;
    await clock.sleep(1 + random());
    const names = steps.map(({ table, key }) => `${table} ${key}`);
    const met = names.map((name) => this.#taken.has(name));
    if (met.some(Boolean)) {
      counts.conflicts += 1;
      for (const [at, is] of met.entries())
        if (is) this.conflictsBy.set(names[at]!, (this.conflictsBy.get(names[at]!) ?? 0) + 1);
      // Of the two writes per item, only the prepare.
      counts.wasted += steps.reduce((sum, { units }) => sum + units, 0);
      for (const step of steps) this.#pay(step, 1);
      throw await this.#cancelled(met.map((is) => (is ? 'TransactionConflict' : 'None')));
    }
    const full = steps.map((step) => this.#isFull(step));
    if (full.some(Boolean)) {
      counts.throttled += 1;
      throw await this.#cancelled(full.map((is) => (is ? 'ThrottlingError' : 'None')));
    }
    for (const name of names) this.#taken.add(name);
    await clock.sleep(8 + 0.4 * steps.length - 5 * Math.log(1 - random()));
    for (const name of names) this.#taken.delete(name);
    for (const step of steps) this.#pay(step, 2);
    const refused = steps.map((step) => step.isRefused(this.#table(step.table).get(step.key)));
    if (refused.some(Boolean)) {
      counts.refused += 1;
      counts.wasted += steps.reduce((sum, { units }) => sum + 2 * units, 0);
      throw await this.#cancelled(refused.map((is) => (is ? 'ConditionalCheckFailed' : 'None')));
    }
    for (const step of steps) this.#write(step);
    await this.#replied();
  }

  async #alone(step: Step): Promise<void> {
    await this.#options.clock.sleep(2 + 4 * this.#options.random());
    if (this.#taken.has(`${step.table} ${step.key}`) || this.#isFull(step))
      throw new StoreUnavailable('The store did not answer.');
    this.#pay(step, 1);
    if (step.isRefused(this.#table(step.table).get(step.key)))
      throw Object.assign(new Error('refused'), { name: 'ConditionalCheckFailedException' });
    this.#write(step);
    await this.#replied();
  }

  #write(step: Step): void {
    const items = this.#table(step.table);
    const item = step.written(items.get(step.key));
    if (!item) return;
    items.set(step.key, item);
    const name = `${step.table} ${step.id}`;
    this.#partitions.set(name, (this.#partitions.get(name) ?? new Map()).set(step.key, item));
    this.onWrite(step.table, item);
  }

  async #replied(): Promise<void> {
    const { clock, random, lost = 0 } = this.#options;
    await clock.sleep(1);
    if (random() >= lost) return;
    this.counts.lost += 1;
    await clock.sleep(1_000);
    throw new StoreUnavailable('The store did not answer.');
  }

  async #cancelled(codes: string[]): Promise<Error> {
    await this.#options.clock.sleep(3);
    const CancellationReasons: CancellationReason[] = codes.map((Code) => ({ Code }));
    return new TransactionCanceledException({ message: 'cancelled', $metadata: {}, CancellationReasons });
  }

  #pay(step: Step, factor: number): void {
    this.counts.units += step.units * factor;
    this.#bucketOf(step).pay(step.units * factor);
  }

  #isFull(step: Step): boolean {
    return this.#options.isThrottled?.() === true || this.#bucketOf(step).isEmpty;
  }

  #bucketOf({ table, id }: Pick<Step, 'table' | 'id'>): Bucket {
    const name = `${table} ${hash53(id) % this.#options.partitions}`;
    const found = this.#buckets.get(name);
    if (found) return found;
    const made = new Bucket(this.#options.clock, writeUnitsPerSecond);
    this.#buckets.set(name, made);
    return made;
  }

  #table(name: string): Map<string, Attributes> {
    const found = this.#tables.get(name);
    if (found) return found;
    const made = new Map<string, Attributes>();
    this.#tables.set(name, made);
    return made;
  }

  /** Reads a partition between two sort keys. */
  #query({ TableName = '', ExpressionAttributeValues: values = {} }: TableOperations['Query']['input']) {
    const [id, from, to] = [':id', ':from', ':to'].map((name) => values[name]?.S ?? '');
    return [...(this.#partitions.get(`${TableName} ${id}`)?.values() ?? [])]
      .filter((item) => textOf(item['period']) >= from! && textOf(item['period']) <= to!)
      .toSorted((a, b) => (textOf(a['period']) < textOf(b['period']) ? -1 : 1));
  }
}

const textOf = (value: AttributeValue | undefined): string => value?.S ?? '';

function keyOf(table: string, item: Attributes): string {
  const { partitionKey, sortKey } = schemaOf(table);
  return sortKey
    ? `${textOf(item[partitionKey.name])}\u0000${textOf(item[sortKey.name])}`
    : textOf(item[partitionKey.name]);
}

function schemaOf(table: string): { partitionKey: { name: string }; sortKey?: { name: string } } {
  return tableSchemas[table.slice('relay-'.length) as keyof typeof tableSchemas];
}

/** A row costs one unit, and so does a sum; the registry of open items costs as many as the keys in it. */
function stepOf({ Put, Update }: TransactWriteItem): Step {
  const { TableName: table = '', ConditionExpression: condition } = Put ?? Update ?? {};
  const key = Put?.Item ?? Update?.Key ?? {};
  const registered = Update?.ExpressionAttributeValues?.[':items']?.SS?.join('').length ?? 0;
  return {
    table,
    key: keyOf(table, key),
    id: textOf(key[schemaOf(table).partitionKey.name]),
    units: 1 + Math.floor(registered / unitBytes),
    isRefused: (item) => condition !== undefined && !mayPut(condition, item),
    written: (item) => (Put ? Put.Item : updated(Update!, item)),
  };
}

/** The conditions of rows: none exists yet, or the existing one is `cancelled` and gives way. */
const mayPut = (condition: string, item: Attributes | undefined): boolean =>
  item === undefined || (condition.includes(':cancelled') && item['kind']?.S === 'cancelled');

const clauses = new Map<string, { sets: [string, string][]; adds: [string, string][] }>();

/** Parses `SET a = :a, b = if_not_exists(b, :b) ADD c :c, d :d`, in any order. */
function clausesOf(expression: string) {
  const found = clauses.get(expression);
  if (found) return found;
  const made: { sets: [string, string][]; adds: [string, string][] } = { sets: [], adds: [] };
  for (const [, kind, list = ''] of expression.matchAll(/(SET|ADD) (.*?)(?= (?:SET|ADD|REMOVE) |$)/g))
    for (const each of list.split(/, (?![^(]*\))/)) {
      const [name = '', value = ''] = each.trim().split(kind === 'SET' ? ' = ' : ' ');
      made[kind === 'SET' ? 'sets' : 'adds'].push([name, value]);
    }
  clauses.set(expression, made);
  return made;
}

function updated(
  {
    Key = {},
    UpdateExpression = '',
    ExpressionAttributeNames: names = {},
    ExpressionAttributeValues: values = {},
  }: NonNullable<TransactWriteItem['Update']>,
  item: Attributes | undefined,
): Attributes {
  const { sets, adds } = clausesOf(UpdateExpression);
  const next: Attributes = item ?? { ...Key };
  const named = (name: string): string => names[name] ?? name;
  for (const [name, value] of sets) {
    const [, kept, first] = /^if_not_exists\((\S+), (\S+)\)$/.exec(value) ?? [];
    const found = kept === undefined ? undefined : next[named(kept)];
    next[named(name)] = found ?? values[first ?? value]!;
  }
  for (const [name, value] of adds) next[named(name)] = sum(next[named(name)], values[value]!);
  return next;
}

function sum(a: AttributeValue | undefined, b: AttributeValue): AttributeValue {
  if (b.SS) return { SS: [...new Set([...(a?.SS ?? []), ...b.SS])] };
  if (a?.N === undefined) return b;
  const whole = Number(a.N) + Number(b.N);
  if (Number.isSafeInteger(whole) && !a.N.includes('.') && !b.N!.includes('.')) return { N: String(whole) };
  return { N: formatYuan(parseYuan(a.N)! + parseYuan(b.N!)!) };
}
