/** Warns of models that a key is to be allowed and that nobody serves: a typing mistake, or a model that comes later. */
import { compileSnapshot } from '../../config/compile/compile-snapshot.ts';
import { offeredNames } from '../../config/marks/key-doubts.ts';
import { namesShown } from '../../config/marks/names-shown.ts';
import type { OperatorPorts } from '../operator-ports.ts';

/** @param models undefined: every model */
export async function unservedModels(
  { config, target }: Pick<OperatorPorts, 'config' | 'target'>,
  models: readonly string[] | undefined,
): Promise<string[]> {
  if (models === undefined) return [];
  const { snapshot } = compileSnapshot(await config.tables(), { local: target.local, publishedAt: 0 });
  const offered = offeredNames(snapshot);
  const unserved = models.filter((name) => !offered.has(name));
  return unserved.length === 0 ? [] : [`no channel that is on serves ${namesShown(unserved)}`];
}
