/**
 * Health of candidates in one item of the table `runtime`, which every environment reads with its configuration. Must
 * never make a call wait for a read. `health-item.ts` has the item's form; it is loaded when there is an entry.
 */
import type { Clock } from '../../relay/ports/host.ts';
import type { ChannelHealth, HealthChange, HealthEntry } from '../../relay/ports/runtime-stores.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import {
  attributesOf,
  valuesOf,
  conditionalCall,
  type ConditionalReply,
  type TableClient,
  type TableOperations,
} from './table-client.ts';
import type { HealthImage, HealthWrite } from './health-items.ts';
import { cooldownsId, neverRead, type ItemView, type RuntimeItem } from './runtime-items.ts';

type Updated = TableOperations['UpdateItem']['output'];

const triesMax = 3;
const noEntries: ReadonlyMap<number, HealthEntry> = new Map();

/** The item as last read with the configuration. */
export interface ChannelHealthParts {
  client: TableClient;
  clock: Pick<Clock, 'now'>;
  stack: string;
  view: () => ItemView;
}

export class DynamoChannelHealth implements ChannelHealth {
  readonly #parts: ChannelHealthParts;
  /** What the last write of this environment met. It overrides an older read. */
  #written = neverRead;
  #parsed: { item: RuntimeItem | undefined; image: HealthImage } | undefined;

  constructor(parts: ChannelHealthParts) {
    this.#parts = parts;
  }

  async entries(): Promise<ReadonlyMap<number, HealthEntry>> {
    const item = this.#newest();
    for (const name in item) if (name !== 'id') return (await this.#image(item)).entries;
    return noEntries;
  }

  async change(key: number, change: HealthChange): Promise<boolean> {
    const { writeOf } = await import('./health-items.ts');
    let item = this.#newest();
    for (let tries = 0; tries < triesMax; tries += 1) {
      const image = await this.#image(item);
      const before = image.entries.get(key);
      const entry = change(before);
      const write = entry === before ? undefined : writeOf(image, { key, entry, nowMs: this.#nowMs });
      if (!write) return false;
      const reply = await this.#send(write);
      const met = reply.done ? reply.reply.Attributes : reply.item;
      item = met && valuesOf(met);
      this.#written = { item, readAtMs: this.#nowMs };
      if (reply.done) return true;
    }
    return false;
  }

  get #nowMs(): number {
    return this.#parts.clock.now();
  }

  #newest(): RuntimeItem | undefined {
    const read = this.#parts.view();
    return read.readAtMs >= this.#written.readAtMs ? read.item : this.#written.item;
  }

  /** Parses each item once. */
  async #image(item: RuntimeItem | undefined): Promise<HealthImage> {
    if (this.#parsed?.item === item && this.#parsed) return this.#parsed.image;
    const { imageOf } = await import('./health-items.ts');
    const image = imageOf(item);
    this.#parsed = { item, image };
    return image;
  }

  async #send(write: HealthWrite): Promise<ConditionalReply<Updated>> {
    const { updateOf } = await import('./health-items.ts');
    const { update, condition, names, values } = updateOf(write);
    const input = {
      TableName: physicalTableName(this.#parts.stack, 'runtime'),
      Key: attributesOf({ id: cooldownsId }),
      UpdateExpression: update,
      ConditionExpression: condition,
      ExpressionAttributeNames: names,
      ExpressionAttributeValues: attributesOf(values),
      ReturnValues: 'ALL_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    } as const;
    return conditionalCall(() => this.#parts.client.call('UpdateItem', input));
  }
}
