/** What is known against a channel now: which of its places or models rest, why, and until when. */
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { candidatesOf } from '../../relay/call/serving-channels.ts';
import { healthKeysOf } from '../../relay/health/health-recorder.ts';
import { forgottenAtMs, type HealthEntry, type RestKind } from '../../relay/ports/stores/channel-health.ts';

export interface RestingPlace {
  kind: RestKind | 'failures';
  /** Epoch milliseconds. Of failures in a row: when the last one was. */
  atMs: number;
  /** The model that rests. Undefined: the whole channel, or one of its secrets. */
  model: string | undefined;
  /** Failures in a row that have not led to a rest. */
  failures?: number;
}

/** Each fact once, those that keep calls away the longest first. */
export function restingPlaces(
  channel: ChannelRow,
  entries: ReadonlyMap<number, HealthEntry>,
  nowMs: number,
): RestingPlace[] {
  const found = new Map<number, RestingPlace>();
  for (const model of channel.models)
    for (const candidate of candidatesOf(channel, model))
      for (const [index, key] of healthKeysOf(candidate).entries()) {
        const entry = entries.get(key);
        if (!entry || forgottenAtMs(entry) <= nowMs) continue;
        found.set(key, placeOf(entry, index === 0 ? undefined : model));
      }
  return [...found.values()].toSorted((a, b) => b.atMs - a.atMs);
}

const placeOf = (entry: HealthEntry, model: string | undefined): RestingPlace =>
  entry.kind === 'failures'
    ? { kind: 'failures', atMs: entry.lastMs, model, failures: entry.count }
    : { kind: entry.kind, atMs: Math.max(entry.untilMs, entry.statedUntilMs ?? 0), model };
