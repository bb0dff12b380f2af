/**
 * The table `responses` and the contents in it. Reads are consistent. Ids of clients must be checked before they become
 * keys: a client may only name the head of a response.
 */
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, gunzip, gzip } from 'node:zlib';
import { ResponseTooLarge, type Admit } from '../../../relay/ports/stored.ts';
import {
  attributesOf,
  chunksOf,
  buildExpressions,
  Table,
  valuesOf,
  type Attributes,
  type StoreDeps,
} from '../table-client.ts';
import { sliceBytes } from '../runtime-items.ts';

export type ResponseItem = Record<string, unknown>;

export interface ResponseKey {
  account: string;
  id: string;
}

const responseIdPattern = /^resp-[0-9A-Za-z_-]{1,64}$/;
export const isResponseId = (id: string): boolean => responseIdPattern.test(id);

export const removedStatus = 'removed';

/** Aliased, because some names are reserved words. */
export const buildProjection = (attributes: readonly string[]) => ({
  ProjectionExpression: attributes.map((each) => `#${each}`).join(', '),
});

/** 1 MB each, far more than one response has. */
const pagesMax = 200;
const writtenAtOnceMax = 8;

interface ItemsBetween {
  first: string;
  last: string;
  attributes?: readonly string[];
  after?: Attributes | undefined;
  /** One item at a time, from the last. */
  backwards?: boolean;
}

export class ResponseTable extends Table {
  readonly #clock: StoreDeps['clock'];

  constructor({ client, clock, stack }: StoreDeps) {
    super(client, stack, 'responses');
    this.#clock = clock;
  }

  now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }

  /** DynamoDB removes expired items late. */
  isKept(item: ResponseItem | undefined): item is ResponseItem {
    return (
      typeof item?.['expires'] === 'number' &&
      item['expires'] > this.now() &&
      item['status'] !== removedStatus
    );
  }

  async readItems(
    account: string,
    ids: readonly string[],
    attributes?: string[],
  ): Promise<Map<string, ResponseItem>> {
    const keys = [...new Set(ids)].map((id) => attributesOf({ account, id }));
    const items = await this.read(keys, attributes && { attributes });
    return new Map(items.map((item) => [item['id']?.S ?? '', valuesOf(item)]));
  }

  /** One page of at most 1 MB, in the order of ids. */
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

  /** Removes all parts and events of a response, also parts that no head names. */
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
   * Writes the parts that do not fit into the item itself, and returns the attributes that name them. Throws
   * ResponseTooLarge.
   */
  async putContent(
    { account, id, expires }: ResponseKey & { expires: number },
    { content, inside }: { content: unknown; inside: boolean },
  ): Promise<ResponseItem> {
    const { name, parts, bytes, length } = await pack(content);
    const [first, ...further] = parts;
    const others = inside ? further : parts;
    for (const batch of chunksOf([...others.entries()], writtenAtOnceMax))
      await Promise.all(
        batch.map(([index, body]) =>
          this.put({ account, id: buildPartId(id, name, index + 1), body, expires }),
        ),
      );
    return { body_name: name, parts: others.length, bytes, unpacked: length, ...(inside && { body: first }) };
  }

  /**
   * Unpacks one content after the other, because each may grow a hundredfold. Contents whose item was replaced or removed
   * meanwhile are missing from the result.
   */
  async readContents<Taken>(
    account: string,
    items: readonly ResponseItem[],
    take: (content: unknown, item: ResponseItem) => Taken,
    admit?: Admit,
  ): Promise<Map<string, Taken>> {
    if (items.length > 0) admit?.(items.reduce((sum, item) => sum + measureContent(item), 0));
    const partItems = await this.readItems(account, items.flatMap(listPartIds));
    const contents = new Map<string, Taken>();
    for (const item of items) {
      const firstPart = item['body'];
      const furtherParts = listPartIds(item).map((id) => partItems.get(id)?.['body']);
      const parts = firstPart === undefined ? furtherParts : [firstPart, ...furtherParts];
      const bytes = parts.filter((part) => part instanceof Uint8Array);
      if (bytes.length > 0 && bytes.length === parts.length)
        contents.set(String(item['id']), take(await unpack(bytes), item));
    }
    return contents;
  }
}

/** Includes the content's name, so it never leads to other content. */
const buildPartId = (id: string, name: string, part: number): string => `${id}#b#${name}#${part}`;

export const listPartIds = ({ id, body_name: name, parts }: ResponseItem): string[] =>
  Array.from({ length: Number(parts ?? 0) }, (_, at) => buildPartId(String(id), String(name), at + 1));

export const measureContent = (item: ResponseItem): number => Number(item['unpacked'] ?? 0);

/** Below DynamoDB's 400 KB for an item. */
const partBytesMax = 300_000;
/** 12 MB, more than a conversation may have. */
export const partsMax = 40;
/** More than any request and answer. */
const unpackedBytesMax = 64 * 1024 * 1024;
/** Functions have a fraction of a processor: fast compression takes a third of the time. */
const fastFromLength = 1_000_000;

const compress = promisify<string, { level: number }, Buffer>(gzip);
const decompress = promisify<Uint8Array, { maxOutputLength: number }, Buffer>(gunzip);

/**
 * Gzips content in at least one part. A content is named by its hash, so a head never leads to parts of another, and writes
 * may be repeated. Throws ResponseTooLarge.
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
