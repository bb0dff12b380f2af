import * as z from 'zod/mini';
import { flag, modelName } from '../rows/attribute-schemas.ts';
import type { AliasSettings } from './settings.ts';

/** Each model that may answer is estimated before the call, and three are asked at most. */
const modelsMax = 8;
const wantedModels = `a list of 1 to ${modelsMax} model names, in the order in which they are tried`;
const wantedAlias = `${wantedModels}, or a map {models, on_context_length}`;
const wantedAliases = 'a map from public names to lists of models';

const models = z
  .array(modelName, wantedModels)
  .check(z.minLength(1, wantedModels), z.maxLength(modelsMax, wantedModels));

/** The parts of a requested name that are no part of a model's name are taken off before an alias is looked up. */
const wantedName = 'a name that does not begin with web- or end in -official';
const aliasName = modelName.check(z.refine((name) => !/^web-|-official$/.test(name), wantedName));

/** The setting `aliases`: public names that stand for several models. */
export const AliasesValue = z.record(
  aliasName,
  z.union(
    [
      z.pipe(
        models,
        z.transform((list: string[]) => ({ models: list, on_context_length: false })),
      ),
      z.strictObject({ models, on_context_length: z._default(flag, false) }),
    ],
    wantedAlias,
  ),
  wantedAliases,
);
type AliasesValue = z.infer<typeof AliasesValue>;

/** Checks the rules beyond the schema. */
export function readAliases(value: AliasesValue): { problem: string } | { aliases: AliasSettings[] } {
  const names = new Set(Object.keys(value));
  for (const [name, alias] of Object.entries(value)) {
    const again = alias.models.find((model, at) => alias.models.indexOf(model) < at);
    if (again !== undefined)
      return { problem: `value.${name}: found ${again} twice, wanted each model once` };
    const inner = alias.models.findIndex((model) => names.has(model));
    if (inner >= 0)
      return {
        problem: `value.${name}: found the alias ${alias.models[inner]}, wanted models: an alias cannot stand for an alias`,
      };
  }
  return {
    aliases: Object.entries(value).map(([name, alias]) => ({
      name,
      models: alias.models,
      onContextLength: alias.on_context_length,
    })),
  };
}
