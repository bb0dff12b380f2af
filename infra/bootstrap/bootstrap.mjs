/**
 * What every npm script runs through: installs when the lock file changed, builds and synthesizes when a command needs
 * that and its inputs changed, then runs the command under the repository's Node. Plain JavaScript: the Node that starts
 * it may be 18.
 *
 *     node infra/bootstrap/bootstrap.mjs [--built] <file.ts | tool of node_modules/.bin> [argument...]
 *
 * Writes nothing on stdout: `npm run app` hands that to CDK.
 */
import path from 'node:path';
import { build, buildAndSynthesize, isBuilt } from './build-state.mjs';
import { install, isInstalled, nodeOfRepository } from './install.mjs';
import { withLock } from './preparation-lock.mjs';
import { Failure, print, runCommand } from './processes.mjs';
import { bin } from './repository.mjs';

async function prepare(needsBuild) {
  const ready = () => isInstalled() && (!needsBuild || isBuilt());
  if (ready()) return;
  await withLock(async () => {
    if (!isInstalled()) await install();
    if (needsBuild && !isBuilt()) await buildAndSynthesize();
  });
}

async function start(command, args) {
  const [file, first] = /\.[cm]?ts$/.test(command)
    ? [nodeOfRepository(), [command]]
    : [path.join(bin, command), []];
  // The local stack listens on this channel: it ends when we do, even when we are killed.
  const stdio = command === 'infra/local/main.ts' ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit';
  const run = () => runCommand(file, [...first, ...args], stdio);
  if (command !== 'infra/stack/app.ts') return run();
  // CDK reads the template that this writes: nobody else may build meanwhile.
  return withLock(async () => {
    await build();
    return run();
  });
}

const needsBuild = process.argv[2] === '--built';
const [command, ...args] = process.argv.slice(needsBuild ? 3 : 2);
try {
  if (command === undefined)
    throw new Failure('usage: node infra/bootstrap/bootstrap.mjs [--built] <command> [argument...]');
  await prepare(needsBuild);
  process.exitCode = await start(command, args);
} catch (error) {
  print(error instanceof Failure ? error.message : String(error.stack));
  process.exitCode = 1;
}
