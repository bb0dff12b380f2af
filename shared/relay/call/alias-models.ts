/**
 * The models of an alias that may answer a call. Loaded by the first call to an alias. Must never give a key a model that
 * its whitelist names neither itself nor through the alias.
 */
import type { AliasSettings } from '../../config/settings.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { ChatRequest } from '../../wire/canonical-call.ts';
import { capableOf, modelNotFound, type ModelServing } from './serving-channels.ts';
import type { ModelName, NamedModels, ServingModel } from './call.ts';

export interface CallToAlias {
  alias: AliasSettings;
  name: ModelName;
  /** Those that the key may use, in order. */
  allowed: readonly string[];
  request: ChatRequest;
}

/**
 * Models that nobody serves, or whose channels cannot do what the call needs, are left out. Throws a Refusal when none is
 * served, and the first model's InvalidRequest when none can.
 * @param find undefined: nobody serves the model
 */
export function modelsOfAlias(
  { alias, name, allowed, request }: CallToAlias,
  find: (model: string) => ModelServing | undefined,
): NamedModels {
  let incapable: InvalidRequest | undefined;
  const serving = allowed.flatMap((model): ServingModel[] => {
    const found = find(model);
    if (!found) return [];
    try {
      return [Object.freeze({ model, ...capableOf(found, { model, request }) })];
    } catch (error) {
      if (!(error instanceof InvalidRequest)) throw error;
      incapable ??= error;
      return [];
    }
  });
  const [first, ...rest] = serving;
  if (!first) throw incapable ?? modelNotFound(alias.name, 'no_channel');
  const models = Object.freeze([first, ...rest] as const);
  return {
    model: Object.freeze({ ...name, base: first.model }),
    charges: first.charges,
    limits: first.limits,
    candidates: Object.freeze(models.flatMap(({ candidates }) => candidates)),
    alias: Object.freeze({ name: alias.name, onContextLength: alias.onContextLength, models }),
  };
}
