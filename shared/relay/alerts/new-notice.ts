/** Makes notices: an id that sorts by time, and the time. */
import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import type { Notice } from '../../wire/public/notice.ts';

export interface NoticeParts {
  clock: Pick<Clock, 'now'>;
  ids: Ids;
}

export const newNotice = (
  { clock, ids }: NoticeParts,
  about: Pick<Notice, 'type' | 'account' | 'data'>,
): Notice => ({ id: ids.next(), created: Math.floor(clock.now() / 1000), ...about });
