/** Installs when the lock file has changed, and builds when the inputs have, one process at a time. */
import { buildAndSynthesize, isBuilt } from './build-state.mjs';
import { install, isInstalled } from './install.mjs';
import { runPhases } from './phases.mjs';
import { withLock } from './preparation-lock.mjs';

const installing = { doing: 'installing packages', done: 'packages installed', work: install };
const building = { doing: 'building', done: 'built', work: buildAndSynthesize };

export async function prepare(needsBuild) {
  const missing = () => [
    ...(isInstalled() ? [] : [installing]),
    ...(needsBuild && !isBuilt() ? [building] : []),
  ];
  if (missing().length > 0) await withLock(() => runPhases(missing()));
}
