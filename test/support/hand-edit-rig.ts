import { BatchWriteCommand, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import { physicalNameOf, type TableName } from '../../shared/tables/table-names.ts';
import { tableSchemas } from '../../shared/tables/table-schemas.ts';
import { startCountedStack, type CountedStack } from '../hardening/watched-stack.ts';
import { rowsBefore, type HandEdit } from './hand-edits.ts';

type Row = Record<string, unknown>;

export const rowKey = (table: TableName, row: Row): Row => {
  const { name } = tableSchemas[table].partitionKey;
  return { [name]: row[name] };
};

/** A running stack whose rows are written by other programs, as operators do. */
export class HandEditRig {
  readonly #stack: CountedStack;

  private constructor(stack: CountedStack) {
    this.#stack = stack;
  }

  static async start(): Promise<HandEditRig> {
    return new HandEditRig(await startCountedStack({ rows: rowsBefore, environmentsMax: 1 }));
  }

  stop(): Promise<void> {
    return this.#stack.stop();
  }

  get calls(): { action: string; table: string | undefined }[] {
    return this.#stack.store.calls;
  }

  async offers(model: string): Promise<boolean> {
    return (await (await fetch(`${this.#stack.origin}/v1/models`)).text()).includes(`"${model}"`);
  }

  async put(table: TableName, Item: Row): Promise<void> {
    const TableName = physicalNameOf('relay', table);
    await this.#stack.store.documents.send(new PutCommand({ TableName, Item }));
  }

  /** In batches of 25. */
  async putMany(table: TableName, rows: Row[]): Promise<void> {
    const name = physicalNameOf('relay', table);
    for (let start = 0; start < rows.length; start += 25) {
      const requests = rows.slice(start, start + 25).map((Item) => ({ PutRequest: { Item } }));
      await this.#stack.store.documents.send(new BatchWriteCommand({ RequestItems: { [name]: requests } }));
    }
  }

  async row(table: TableName, row: Row): Promise<Row> {
    const get = new GetCommand({ TableName: physicalNameOf('relay', table), Key: rowKey(table, row) });
    return (await this.#stack.store.documents.send(get)).Item ?? {};
  }

  /** Returns the current error text of the row. */
  async mark(table: TableName, row: Row): Promise<string> {
    const { _problem, _warning } = await this.row(table, row);
    const mark: unknown = _problem ?? _warning;
    return typeof mark === 'string' ? mark : '';
  }

  async isMarked([table, row, says]: HandEdit): Promise<boolean> {
    const mark = await this.mark(table, row);
    return typeof says === 'string'
      ? mark.split('; ').some((part) => part.startsWith(says))
      : says.test(mark);
  }
}
