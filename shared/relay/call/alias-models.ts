/**
 * The models of an alias that may answer a call. Loaded by the first call to an alias. Must never give a key a model that
 * its whitelist names neither itself nor through the alias.
 */
import type { AliasSettings } from '../../config/settings/settings.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { allowedModels } from './access.ts';
import { capableChannels } from './capable-channels.ts';
import type { ChatCall, ServingModel } from './chat-call.ts';
import { channelsOf, modelNotFound, type AskedModel } from './serving-channels.ts';

/**
 * Models that nobody serves, or whose channels cannot do what the call needs, are left out. Throws a Refusal when none is
 * served, and the first model's InvalidRequest when none can.
 */
export function modelsOfAlias(
  snapshot: Snapshot,
  alias: AliasSettings,
  { name, request, key, nowMs }: AskedModel,
): Pick<ChatCall, 'model' | 'channels' | 'alias'> {
  let incapable: InvalidRequest | undefined;
  const serving = allowedModels(key, alias).flatMap((model): ServingModel[] => {
    const [first, ...rest] = channelsOf(snapshot, model, nowMs);
    if (!first) return [];
    try {
      return [{ model, channels: capableChannels([first, ...rest], { model, request }) }];
    } catch (error) {
      if (!(error instanceof InvalidRequest)) throw error;
      incapable ??= error;
      return [];
    }
  });
  const [first, ...rest] = serving;
  if (!first) throw incapable ?? modelNotFound(alias.name);
  return {
    model: { ...name, base: first.model },
    channels: first.channels,
    alias: Object.freeze({
      name: alias.name,
      onContextLength: alias.onContextLength,
      models: Object.freeze([first, ...rest] as const),
    }),
  };
}
