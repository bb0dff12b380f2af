/**
 * The table `responses`, whose key is account and id, and the contents in it. Reads are consistent. Ids of clients are looked
 * at before they become keys: no client may name an item that is not the head of a response.
 */
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, gunzip, gzip } from 'node:zlib';
import type { Clock } from '../../../relay/ports/host.ts';
import { ResponseTooLarge, type Admit } from '../../../relay/ports/stored.ts';
import {
  attributesOf,
  chunksOf,
  buildExpressions,
  Table,
  valuesOf,
  type Attributes,
  type TableClient,
} from '../table-client.ts';
import { sliceBytes } from '../runtime-items.ts';

export type ResponseItem = Record<string, unknown>;

export interface ResponseKey {
  account: string;
  id: string;
}

const responseIdPattern = /^resp-[0-9A-Za-z_-]{1,64}$/;
export const isResponseId = (id: string): boolean => responseIdPattern.test(id);

/** The status of what stands for a response that was removed. */
export const removedStatus = 'removed';

/** Names of attributes for an expression: words that DynamoDB reserves are among them. */
export const buildProjection = (attributes: readonly string[]) => ({
  ProjectionExpression: attributes.map((each) => `#${each}`).join(', '),
});

/** Of one prefix, 1 MB each: far more than one response has. */
const pagesMax = 200;
/** Of large items; each is some 400 KB on its way. */
const writtenAtOnceMax = 8;

/** A range of ids. */
interface ItemsBetween {
  first: string;
  last: string;
  attributes?: readonly string[];
  after?: Attributes | undefined;
  /** From the last one on, one at a time. */
  backwards?: boolean;
}

export class ResponseTable extends Table {
  readonly #clock: Pick<Clock, 'now'>;

  constructor({ client, clock, stack }: { client: TableClient; clock: Pick<Clock, 'now'>; stack: string }) {
    super(client, stack, 'responses');
    this.#clock = clock;
  }

  /** Unix seconds. */
  now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }

  /** DynamoDB removes expired items with a delay. */
  isKept(item: ResponseItem | undefined): item is ResponseItem {
    return (
      typeof item?.['expires'] === 'number' &&
      item['expires'] > this.now() &&
      item['status'] !== removedStatus
    );
  }

  /** By id. Absent: there is none. */
  async readItems(
    account: string,
    ids: readonly string[],
    attributes?: string[],
  ): Promise<Map<string, ResponseItem>> {
    const keys = [...new Set(ids)].map((id) => attributesOf({ account, id }));
    const items = await this.read(keys, attributes && { attributes });
    return new Map(items.map((item) => [item['id']?.S ?? '', valuesOf(item)]));
  }

  /** In the order of their ids: one page of at most 1 MB, and where the next one begins. */
  async readBetween(
    account: string,
    { first, last, attributes, after, backwards }: ItemsBetween,
  ): Promise<{ items: ResponseItem[]; next: Attributes | undefined }> {
    const range = buildExpressions(
      {
        KeyConditionExpression: '#account = :account AND #id BETWEEN :first AND :last',
        ...(attributes && buildProjection(attributes)),
      },
      { ':account': account, ':first': first, ':last': last },
    );
    const { Items = [], LastEvaluatedKey } = await this.query({
      ConsistentRead: true,
      ...range,
      ...(after && { ExclusiveStartKey: after }),
      ...(backwards && { ScanIndexForward: false, Limit: 1 }),
    });
    return { items: Items.map(valuesOf), next: LastEvaluatedKey };
  }

  /** Everything of a response but its head: parts, also of contents that no head names, and events. */
  async removeAllButHead({ account, id }: ResponseKey): Promise<void> {
    let after: Attributes | undefined;
    for (let pages = 0; pages < pagesMax; pages += 1) {
      const range = { first: `${id}#`, last: `${id}#~`, attributes: ['id'], after };
      const { items, next } = await this.readBetween(account, range);
      await this.remove(items.map((item) => ({ account, id: item['id'] })));
      if (!next) return;
      after = next;
    }
  }

  /**
   * Writes the parts of a content that do not go into its item itself. Returns the attributes by which the item leads to
   * them. Throws ResponseTooLarge.
   */
  async putContent(
    { account, id, expires }: ResponseKey & { expires: number },
    { content, inside }: { content: unknown; inside: boolean },
  ): Promise<ResponseItem> {
    const { name, parts, bytes, length } = await pack(content);
    const [first, ...rest] = parts;
    const others = inside ? rest : parts;
    for (const some of chunksOf([...others.entries()], writtenAtOnceMax))
      await Promise.all(
        some.map(([index, body]) => this.put({ account, id: partId(id, name, index + 1), body, expires })),
      );
    return { body_name: name, parts: others.length, bytes, unpacked: length, ...(inside && { body: first }) };
  }

  /**
   * What `take` makes of each content, by id of the item. One after the other, because a content may be a hundred times what
   * it is packed. Absent: parts are missing, because the item was replaced or removed since it was read.
   */
  async readContents<Taken>(
    account: string,
    items: readonly ResponseItem[],
    take: (content: unknown, item: ResponseItem) => Taken,
    admit?: Admit,
  ): Promise<Map<string, Taken>> {
    if (items.length > 0) admit?.(items.reduce((sum, item) => sum + measureContent(item), 0));
    const rest = await this.readItems(account, items.flatMap(listPartIds));
    const taken = new Map<string, Taken>();
    for (const item of items) {
      const inside = item['body'];
      const beside = listPartIds(item).map((id) => rest.get(id)?.['body']);
      const parts = inside === undefined ? beside : [inside, ...beside];
      const bytes = parts.filter((part) => part instanceof Uint8Array);
      if (bytes.length > 0 && bytes.length === parts.length)
        taken.set(String(item['id']), take(await unpack(bytes), item));
    }
    return taken;
  }
}

/** Names that lead to no other content. */
const partId = (id: string, name: string, part: number): string => `${id}#b#${name}#${part}`;

/** Ids of the parts that are not in the item itself. */
export const listPartIds = ({ id, body_name: name, parts }: ResponseItem): string[] =>
  Array.from({ length: Number(parts ?? 0) }, (_, at) => partId(String(id), String(name), at + 1));

/** UTF-16 code units of the JSON that an item's content unpacks to. */
export const measureContent = (item: ResponseItem): number => Number(item['unpacked'] ?? 0);

/** Below DynamoDB's limit of 400 KB for an item, with room for the other attributes. */
const partBytesMax = 300_000;
/** 12 MB: what a conversation may have, as it is sent, with room for what does not shrink. */
export const partsMax = 40;
/** Of what is read: more than any request and answer. */
const unpackedBytesMax = 64 * 1024 * 1024;
/** Functions have a fraction of a processor: what is longer is compressed in a third of the time, a little worse. */
const fastFromLength = 1_000_000;

const compress = promisify<string, { level: number }, Buffer>(gzip);
const decompress = promisify<Uint8Array, { maxOutputLength: number }, Buffer>(gunzip);

/**
 * Content as gzip, in at least one part. The name of a content is the hash of its bytes: its parts have names that no other
 * content has, so a head never leads to the parts of another, and a write may be repeated. Throws ResponseTooLarge.
 */
export async function pack(
  content: unknown,
): Promise<{ name: string; parts: Uint8Array[]; bytes: number; length: number }> {
  const text = JSON.stringify(content);
  const { Z_BEST_SPEED, Z_DEFAULT_COMPRESSION } = constants;
  const level = text.length > fastFromLength ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION;
  const packed = await compress(text, { level });
  const parts = sliceBytes(packed, partBytesMax);
  if (parts.length > partsMax) throw new ResponseTooLarge(`${packed.length} bytes`);
  const name = hash('sha256', packed, 'base64url').slice(0, 22);
  return { name, parts, bytes: packed.length, length: text.length };
}

async function unpack(parts: readonly Uint8Array[]): Promise<unknown> {
  const text = await decompress(Buffer.concat(parts), { maxOutputLength: unpackedBytesMax });
  return JSON.parse(text.toString());
}
