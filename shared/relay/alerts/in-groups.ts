/** Bounds how much work of one job runs at once. */

const atOnceMax = 10;

/** Does the work of all items, a few at once. Rejects with the first failure after its group has ended. */
export async function inGroups<Item>(
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
): Promise<void> {
  for (let start = 0; start < items.length; start += atOnceMax) {
    const done = await Promise.allSettled(items.slice(start, start + atOnceMax).map(work));
    const failed = done.find((each) => each.status === 'rejected');
    if (failed) throw failed.reason;
  }
}
