/** Installs the packages when they differ from the lock file, and finds the Node that is one of them. */
import fs from 'node:fs';
import path from 'node:path';
import { environment, Failure, runStep } from './processes.mjs';
import { bin, digest, inRoot, read } from './repository.mjs';

const stamp = inRoot('node_modules', '.relay-install');
const oldestNode = [22, 19];
const readLock = () => fs.readFileSync(inRoot('package-lock.json'), 'utf8');

/** True when the installed packages match the lock file, no matter which command installed them. */
export function isInstalled() {
  const lock = readLock();
  if (read(stamp) === digest(lock)) return true;
  const installed = read(inRoot('node_modules', '.package-lock.json'));
  if (installed === undefined) return false;
  const found = JSON.parse(installed).packages;
  const wanted = Object.entries(JSON.parse(lock).packages).filter(([name]) => name !== '');
  const same = wanted.every(([name, { version, optional }]) =>
    found[name] === undefined ? optional === true : found[name].version === version,
  );
  if (same) fs.writeFileSync(stamp, digest(lock));
  return same;
}

export async function install() {
  await npm(['ci', '--include=dev', '--include=optional'], process.execPath, process.env);
  // Under an old Node, npm skips optional packages that need a newer one, such as the linter's binary.
  if (!isNewEnough()) await npm(['install', '--no-save'], nodeOfRepository(), environment());
  fs.mkdirSync(inRoot('node_modules'), { recursive: true });
  fs.writeFileSync(stamp, digest(readLock()));
}

const unreachable = /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH)\b/;
const noRoom = /\bENOSPC\b/;

function npm(command, node, env) {
  const args = [...command, '--no-audit', '--no-fund', '--loglevel=error'];
  const cli = process.env.npm_execpath;
  const [file, first] = cli?.endsWith('.js') ? [node, [cli]] : ['npm', []];
  return runStep({ name: `npm ${command[0]}`, file, args: [...first, ...args], env, said: inOneSentence });
}

/** Undefined: npm's own words say it. */
function inOneSentence(printed) {
  if (unreachable.test(printed))
    return "npm's registry cannot be reached: is this machine online, is a proxy set (npm config get proxy)? Then repeat the command.";
  return noRoom.test(printed) ? 'the disk is full: make room, then repeat the command.' : undefined;
}

function isNewEnough() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
}

/** The Node in `node_modules`; if there is none for this system, the current Node if it is new enough. */
export function nodeOfRepository() {
  const own = path.join(bin, 'node');
  if (fs.existsSync(own)) return own;
  if (isNewEnough()) return process.execPath;
  throw new Failure(
    `Node ${oldestNode.join('.')} or later is wanted here; this is ${process.versions.node}.`,
  );
}
