/** Warnings of keys that depend on other tables. Such a key is still used. */
import { attributeOf } from '../rows/read-row.ts';
import type { Snapshot } from '../snapshot.ts';
import { namesShown } from './names-shown.ts';

/** What is known beside a key. Undefined: it was not looked at. */
export interface BesideKeys {
  /** The names that calls may ask for. */
  offered?: ReadonlySet<string> | undefined;
  accounts?: ReadonlySet<string> | undefined;
}

/** Aliases too: a key may name one. */
export const offeredNames = ({ models, settings }: Pick<Snapshot, 'models' | 'settings'>): Set<string> =>
  new Set([...models, ...(settings.aliases ?? []).map(({ name }) => name)]);

/** `raw`: a row without a problem. In the past tense, as a mark stays until the row is written again. */
export function keyDoubts(raw: unknown, { offered, accounts }: BesideKeys): string[] {
  const account = attributeOf(raw, 'account');
  const unserved = offered ? namedModels(raw).filter((name) => !offered.has(name)) : [];
  return [
    ...(accounts && typeof account === 'string' && !accounts.has(account)
      ? ['account: had no row when this was looked up, so the key has no plan and no limits of an account']
      : []),
    ...(unserved.length > 0
      ? [`models: no channel that is on served ${namesShown(unserved)} when this was looked up`]
      : []),
  ];
}

/** The models of a key, as a list or a set. */
export function namedModels(raw: unknown): string[] {
  const models = attributeOf(raw, 'models');
  const names = models instanceof Set || Array.isArray(models) ? [...(models as Iterable<unknown>)] : [];
  return names.filter((name) => typeof name === 'string');
}
