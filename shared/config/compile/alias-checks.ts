import type { ChannelRow } from '../rows/channel-row.ts';
import type { AliasSettings } from '../settings/settings.ts';

/** The names that rows of channels have, on or off. What such a name means must not change by an edit of a setting. */
const namesOf = (channels: readonly ChannelRow[]): ReadonlySet<string> =>
  new Set(channels.flatMap(({ models }) => models));

/** The aliases that calls may use. `channels`: on and off. */
export function usedAliases(
  aliases: readonly AliasSettings[],
  channels: readonly ChannelRow[],
): AliasSettings[] {
  const taken = namesOf(channels);
  return aliases.filter(({ name }) => !taken.has(name));
}

export interface WrittenAliases {
  aliases: readonly AliasSettings[];
  /** On and off. */
  channels: readonly ChannelRow[];
  /** The models that callers may ask for. */
  offered: ReadonlySet<string>;
}

/** The warnings of the row `aliases`. */
export function aliasWarnings({ aliases, channels, offered }: WrittenAliases): string[] {
  const taken = namesOf(channels);
  return aliases.flatMap(({ name, models }) => {
    if (taken.has(name))
      return [`value.${name}: not used, because a channel has a model of this name, which stays that model`];
    const missing = models.filter((model) => !offered.has(model));
    if (missing.length === models.length)
      return [`value.${name}: not offered, because no channel that is on serves any of its models`];
    return missing.map((model) => `value.${name}: skips ${model}, which no channel that is on serves`);
  });
}
