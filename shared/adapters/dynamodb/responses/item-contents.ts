/** Contents of items: the first part in the item itself or not, the others beside it, under names that lead to no other content. */
import type { Admit } from '../../../relay/ports/stored/response-store.ts';
import {
  chunksOf,
  getResponseItems,
  putResponseItem,
  type ResponseItem,
  type ResponseKey,
  type ResponseTable,
} from './response-items.ts';
import { pack, unpack } from './stored-parts.ts';

/** Of large items; each is some 400 KB on its way. */
const writtenAtOnceMax = 8;

const partId = (id: string, name: string, part: number): string => `${id}#b#${name}#${part}`;

/** Ids of the parts that are not in the item itself. */
export function partIdsOf({ id, body_name: name, parts }: ResponseItem): string[] {
  const count = typeof parts === 'number' ? parts : 0;
  return Array.from({ length: count }, (_, index) => partId(String(id), String(name), index + 1));
}

/**
 * Writes the parts that do not go into the item itself. Returns the attributes by which the item leads to them. Throws
 * ResponseTooLarge.
 */
export async function putContent(
  table: ResponseTable,
  { account, id, expires }: ResponseKey & { expires: number },
  { content, inside }: { content: unknown; inside: boolean },
): Promise<ResponseItem> {
  const { name, parts, bytes, length } = await pack(content);
  const [first, ...rest] = parts;
  const others = inside ? rest : parts;
  for (const some of chunksOf([...others.entries()], writtenAtOnceMax))
    await Promise.all(
      some.map(([index, body]) =>
        putResponseItem(table, { account, id: partId(id, name, index + 1), body, expires }),
      ),
    );
  return { body_name: name, parts: others.length, bytes, unpacked: length, ...(inside && { body: first }) };
}

/** UTF-16 code units of the JSON that an item's content unpacks to. */
export const contentLength = (item: ResponseItem): number => Number(item['unpacked'] ?? 0);

/**
 * What `take` makes of each content, by id of the item. One after the other, because a content may be a hundred times what
 * it is packed. Absent: parts are missing, because the item was replaced or removed since it was read.
 */
export async function contentsOf<Taken>(
  table: ResponseTable,
  { account, items, admit }: { account: string; items: readonly ResponseItem[]; admit?: Admit | undefined },
  take: (content: unknown, item: ResponseItem) => Taken,
): Promise<Map<string, Taken>> {
  if (items.length > 0) admit?.(items.reduce((sum, item) => sum + contentLength(item), 0));
  const rest = await getResponseItems(table, account, { ids: items.flatMap(partIdsOf) });
  const taken = new Map<string, Taken>();
  for (const item of items) {
    const inside = item['body'];
    const beside = partIdsOf(item).map((id) => rest.get(id)?.['body']);
    const parts = inside === undefined ? beside : [inside, ...beside];
    const bytes = parts.filter((part) => part instanceof Uint8Array);
    if (bytes.length > 0 && bytes.length === parts.length)
      taken.set(String(item['id']), take(await unpack(bytes), item));
  }
  return taken;
}
