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
import net from 'node:net';
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

const usual = { PORT: 8787, DYNAMODB_PORT: 8000 };
/** How far to look for one that is free. */
const triesMax = 50;

/**
 * Finds out whether the local stack's ports are free, before anything is installed, built or started for it. What is no port
 * number is left to the stack, which says what it wants.
 */
async function refuseTakenPorts(variables) {
  const wanted = Object.entries(usual).filter(([name]) => name === 'PORT' || !variables.DYNAMODB_ENDPOINT);
  const asked = wanted.map(([name, port]) => [name, Number(variables[name] || port)]);
  const taken = [];
  for (const [name, port] of asked) if (isPort(port) && !(await isFree(port))) taken.push([name, port]);
  if (taken.length === 0) return;
  const promised = asked.map(([, port]) => port);
  const free = [];
  for (const [name, port] of taken) {
    promised.push(await nextFree(port, promised));
    free.push(`${name}=${promised.at(-1)}`);
  }
  const named = taken.map(([name, port]) => `${port} (${name})`).join(' and ');
  throw new Failure(
    `relay cannot start: port ${named} ${taken.length === 1 ? 'is' : 'are'} in use; try: ${free.join(' ')} npm start`,
  );
}

const isPort = (port) => Number.isInteger(port) && port > 0 && port < 65536;

async function nextFree(port, promised) {
  for (let next = port + 1; next < port + triesMax && isPort(next); next += 1)
    if (!promised.includes(next) && (await isFree(next))) return next;
  return 0;
}

const isFree = (port) =>
  new Promise((resolve) => {
    const server = net.createServer();
    // Any other error, such as a port that needs rights, is the stack's to report.
    server.once('error', ({ code }) => resolve(code !== 'EADDRINUSE'));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

const needsBuild = process.argv[2] === '--built';
const [command, ...args] = process.argv.slice(needsBuild ? 3 : 2);
try {
  if (command === undefined)
    throw new Failure('usage: node infra/bootstrap/bootstrap.mjs [--built] <command> [argument...]');
  if (command === localStack) await refuseTakenPorts(process.env);
  await prepare(needsBuild);
  process.exitCode = await start(command, args);
} catch (error) {
  print(error instanceof Failure ? error.message : String(error.stack));
  process.exitCode = 1;
}
