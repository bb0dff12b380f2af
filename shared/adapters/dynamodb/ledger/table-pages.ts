/** Pages of operators' reads, and rows of them that may be unreadable. */
import type { Reading } from '../../../operate/ledger-reader.ts';
import type { Attributes } from '../attributes.ts';
import type { Store } from '../operator-client.ts';

export async function* pages(
  paginator: AsyncIterator<{ Items?: Attributes[] | undefined }>,
  explained: Store['explained'],
): AsyncGenerator<Attributes[]> {
  for (;;) {
    const next = await explained(paginator.next());
    if (next.done) return;
    yield next.value.Items ?? [];
  }
}

export function reading<Row>(item: Attributes, key: string, read: (item: Attributes) => Row): Reading<Row> {
  try {
    return { row: read(item) };
  } catch (error) {
    return { key, problem: error instanceof Error ? error.message : String(error) };
  }
}
