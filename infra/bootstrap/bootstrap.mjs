/**
 * Starts every npm script. Installs when the lock file has changed, builds and synthesizes when the command
 * needs that and the inputs have changed, then runs the command under the repository's Node. Plain
 * JavaScript, because the Node that starts it may be 18.
 *
 *     node infra/bootstrap/bootstrap.mjs [--built] <file.ts | tool of node_modules/.bin> [argument...]
 *
 * Writes nothing on stdout: CDK reads the stdout of `npm run app`.
 */
import path from 'node:path';
import { build, nodeOfRepository, prepare, withLock } from './prepare.mjs';
import { bin, Failure, print, runCommand } from './processes.mjs';

const localStack = 'infra/local/main.ts';

async function start(command, args) {
  const [file, first] = /\.[cm]?ts$/.test(command)
    ? [nodeOfRepository(), [command]]
    : [path.join(bin, command), []];
  // The channel closes when this process ends, even by `kill -9`; the local stack then ends too.
  const stdio = command === localStack ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit';
  const run = () => runCommand(file, [...first, ...args], { stdio });
  if (command !== 'infra/stack/app.ts') return run();
  // CDK reads the template that this command writes, so no other process may build at the same time.
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
