/** What is known against a channel, in words. */
import type {
  RestingPlace,
  ChannelActivity,
  ChannelWithSums,
} from '../../../../shared/operate/channels/list-channels.ts';
import { html, type Content } from '../layout/markup.ts';
import { badge } from '../layout/table.ts';
import { span } from '../layout/figures.ts';
import { utcDay } from '../../../../shared/wire/iso-time.ts';

const kinds: Record<RestingPlace['kind'], string> = {
  rate_limit: 'rate limit',
  credentials: 'key refused or unpaid',
  failing: 'fails',
  failures: 'failed lately',
};

export function restWords({ kind, atMs, model, failures }: RestingPlace, nowMs: number): string {
  const of = model === undefined ? '' : `${model}: `;
  if (kind === 'failures')
    return `${of}${failures} ${failures === 1 ? 'failure' : 'failures'}, ${span(nowMs - atMs)} ago`;
  return atMs > nowMs
    ? `${of}${kinds[kind]}, rests ${span(atMs - nowMs)}`
    : `${of}${kinds[kind]}, to be probed`;
}

const dayMs = 86_400_000;

/** `yesterday`, with the day as its title. Days are what is known. */
function dayWords(day: string, nowMs: number): Content {
  const days = Math.round((Date.parse(utcDay(nowMs)) - Date.parse(day)) / dayMs);
  const words = days === 0 ? 'today' : days === 1 ? 'yesterday' : `${days} days ago`;
  return html`<time datetime="${day}" title="${day}, UTC" data-sort="${day}">${words}</time>`;
}

/** When it was last called; of one that is on and was not, since when that is known. */
export function lastCallWords(
  { state, activity, isIdle }: Pick<ChannelWithSums, 'state' | 'activity' | 'isIdle'>,
  { nowMs, knownFrom }: { nowMs: number; knownFrom: string | undefined },
): Content {
  if (activity.lastCall !== undefined) return dayWords(activity.lastCall, nowMs);
  if (state !== 'on' || knownFrom === undefined) return '–';
  return isIdle ? badge(`idle since ${knownFrom}`, 'warning') : `none since ${knownFrom}`;
}

export const lastFailureWords = ({ lastFailure }: ChannelActivity, nowMs: number): Content =>
  lastFailure === undefined ? '–' : dayWords(lastFailure, nowMs);
