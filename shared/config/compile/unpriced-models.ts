/** Models without a price: those that no rule names, and those that a rule names which cannot be read. */
import { pricedModels } from '../../billing/price-rule.ts';
import { attributeOf, plainRow } from '../rows/read-row.ts';
import type { Snapshot } from '../snapshot.ts';

type Priced = Pick<Snapshot, 'models' | 'charges' | 'publishedAt'>;

/** Models that channels serve but no billing rule in force names. */
export function unpricedModels({ models, charges, publishedAt }: Priced): string[] {
  const priced = pricedModels(charges, publishedAt * 1000);
  return models.filter((model) => !priced.has(model));
}

/**
 * Of the models those that unreadable rows of `charges` name, as far as can be told. Somebody meant to price them, so they
 * must not be free while no rule does. What cannot be told counts for all models.
 */
export function modelsNamedIn(rows: readonly unknown[], models: readonly string[]): string[] {
  const patterns = rows.flatMap(patternsIn);
  return models.filter((model) => patterns.some((pattern) => isNamed(model.toLowerCase(), pattern)));
}

const everyModel = ['*'];

function patternsIn(raw: unknown): string[] {
  const models = attributeOf(raw, 'models');
  const named = wordsIn(models);
  if (named.length > 0) return named;
  // A list of nothing names nothing. Without `models` another attribute may have the names, such as `model`.
  if (models === undefined || isEmpty(models)) return wordsIn(plainRow(raw));
  return everyModel;
}

const isEmpty = (value: unknown): boolean =>
  (Array.isArray(value) && value.length === 0) || (value instanceof Set && value.size === 0);

/** All that looks like a name, in small letters, at any depth. */
function wordsIn(value: unknown): string[] {
  if (typeof value === 'string') return value.toLowerCase().match(/[\w.:/@*-]+/g) ?? [];
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return [];
  if (value instanceof Set || Array.isArray(value)) return [...value].flatMap(wordsIn);
  return Object.entries(value).flat().flatMap(wordsIn);
}

/** No rule may name models by a pattern; who writes one means all that begin so. */
const isNamed = (model: string, word: string): boolean =>
  word.includes('*') ? model.startsWith(word.slice(0, word.indexOf('*')).replace(/\.$/, '')) : model === word;
