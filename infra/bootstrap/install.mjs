/** Installs the packages when they are not those of the lock file, and finds the Node that came with them. */
import fs from 'node:fs';
import path from 'node:path';
import { Failure, print, runStep } from './processes.mjs';
import { bin, digest, inRoot, read } from './repository.mjs';

const stamp = inRoot('node_modules', '.relay-install');
const oldestNode = [22, 19];
const readLock = () => fs.readFileSync(inRoot('package-lock.json'), 'utf8');

/** True when the installed packages are those of the lock file, however they were installed. */
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
  print('installing packages; the first time takes about a minute');
  const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const npm = process.env.npm_execpath;
  const [file, first] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []];
  await runStep({ name: 'npm ci', file, args: [...first, ...args], env: process.env });
  fs.mkdirSync(inRoot('node_modules'), { recursive: true });
  fs.writeFileSync(stamp, digest(readLock()));
}

/** The Node of `node_modules`; where no package holds one for this system, the Node that runs this, if it is new enough. */
export function nodeOfRepository() {
  const own = path.join(bin, 'node');
  if (fs.existsSync(own)) return own;
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])) return process.execPath;
  throw new Failure(
    `Node ${oldestNode.join('.')} or later is wanted here; this is ${process.versions.node}.`,
  );
}
