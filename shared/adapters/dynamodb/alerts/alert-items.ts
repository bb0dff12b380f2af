/**
 * Items of the table `runtime` that alerts keep: `alert#<cause>` is the mark of a cause, `notice#<id>` an event with its
 * delivery, `notices` the list of events that need another try.
 */
import type { AlertMark } from '../../../relay/ports/alerts/alert-store.ts';
import type { Notice } from '../../../wire/public/notice.ts';
import { receivers, type Receiver, type StoredNotice } from '../../../relay/ports/alerts/notice-store.ts';
import type { RuntimeItem } from '../runtime/runtime-items.ts';

export const markId = (cause: string): string => `alert#${cause}`;
/** function-descriptions.ts names it too: new items with this prefix invoke the notifier. */
export const noticePrefix = 'notice#';
export const noticeId = (id: string): string => `${noticePrefix}${id}`;
export const waitingId = 'notices';

/** An ended notice stays this long, for people who look for it. */
const noticeDays = 30;

export const markOf = (item: RuntimeItem): AlertMark => ({
  open: item['open'] === true,
  changes: typeof item['changes'] === 'number' ? item['changes'] : 0,
});

export const noticeItem = (notice: Notice): RuntimeItem => ({
  id: noticeId(notice.id),
  notice: JSON.stringify(notice),
  tries: 0,
  due: 0,
  left: [...receivers],
  expires: notice.created + noticeDays * 24 * 3600,
});

/** Undefined: everybody has got it, or it was given up. */
export function noticeOf(item: RuntimeItem): StoredNotice | undefined {
  const { notice, tries, due, left } = item;
  if (typeof notice !== 'string' || !Array.isArray(left) || left.length === 0) return undefined;
  return {
    // The cast is safe: only functions write notices.
    notice: JSON.parse(notice) as Notice,
    tries: Number(tries),
    dueMs: Number(due),
    left: left as Receiver[],
  };
}
