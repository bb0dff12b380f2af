/**
 * Prepares a command, one process at a time: installs if the lock file changed, and builds and synthesizes if the inputs
 * changed.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  bin,
  digest,
  environment,
  Failure,
  inRoot,
  isStopping,
  print,
  read,
  root,
  runStep,
} from './processes.mjs';

export async function prepare(needsBuild) {
  const missing = () => [
    ...(isInstalled() ? [] : [{ doing: 'installing packages', done: 'packages installed', work: install }]),
    ...(needsBuild && !isBuilt() ? [{ doing: 'building', done: 'built', work: buildAndSynthesize }] : []),
  ];
  if (missing().length > 0) await withLock(() => runPhases(missing()));
}

const everyMs = 1000;

/** @param phases in order. Keep `doing` and `done` short, because a wrapped line can't be overwritten */
async function runPhases(phases) {
  const isTerminal = process.stderr.isTTY;
  if (!isTerminal && phases.length > 0) print(phases.map(({ doing }) => doing).join(', then '));
  for (const phase of phases) await (isTerminal ? showSeconds(phase) : reportProgress(phase));
}

const reportEveryMs = 10_000;

/** Without a terminal, prints a line every 10 s, so that a slow machine does not look like a hang. */
async function reportProgress({ doing, done, work }) {
  const startedMs = Date.now();
  const seconds = () => Math.round((Date.now() - startedMs) / 1000);
  const timer = setInterval(() => isStopping() || print(`${doing}, ${seconds()} s`), reportEveryMs);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  if (seconds() > 3) print(`${done} in ${seconds()} s`);
}

async function showSeconds({ doing, done, work }) {
  const startedMs = Date.now();
  const seconds = () => Math.round((Date.now() - startedMs) / 1000);
  const show = () => isStopping() || process.stderr.write(`\r\u001B[K${doing}, ${seconds()} s`);
  show();
  const timer = setInterval(show, everyMs);
  try {
    await work();
  } finally {
    clearInterval(timer);
    process.stderr.write('\r\u001B[K');
  }
  print(`${done} in ${seconds()} s`);
}

/** Lets one process at a time install or build in a repository; the others wait. */
const lockFile = path.join(os.tmpdir(), `relay-bootstrap-${digest(root).slice(0, 16)}.lock`);

const release = () => fs.rmSync(lockFile, { force: true });

export async function withLock(work) {
  for (let tries = 0; !takeLock(); tries += 1) {
    if (tries === 0) print('waiting for another install or build');
    await sleep(100);
  }
  process.once('exit', release);
  try {
    return await work();
  } finally {
    process.off('exit', release);
    release();
  }
}

/**
 * Returns false while another process holds the lock. Removes the lock of a dead process, so that the next
 * try succeeds.
 */
function takeLock() {
  const own = `${lockFile}.${process.pid}`;
  try {
    // The lock is created with its content. On a full disk, a lock without a process id would stay forever.
    fs.writeFileSync(own, String(process.pid));
    fs.linkSync(own, lockFile);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  } finally {
    fs.rmSync(own, { force: true });
  }
  const holder = Number(read(lockFile));
  if (holder > 0 && !isAlive(holder)) fs.rmSync(lockFile, { force: true });
  return false;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

const installStamp = inRoot('node_modules', '.relay-install');
const oldestNode = [22, 19];
const readLock = () => fs.readFileSync(inRoot('package-lock.json'), 'utf8');

/** Returns true if the installed packages match the lock file. */
function isInstalled() {
  const lock = readLock();
  if (read(installStamp) === digest(lock)) return true;
  const installed = read(inRoot('node_modules', '.package-lock.json'));
  if (installed === undefined) return false;
  const found = JSON.parse(installed).packages;
  const wanted = Object.entries(JSON.parse(lock).packages).filter(([name]) => name !== '');
  const same = wanted.every(([name, { version, optional }]) =>
    found[name] === undefined ? optional === true : found[name].version === version,
  );
  if (same) fs.writeFileSync(installStamp, digest(lock));
  return same;
}

async function install() {
  await npm(['ci', '--include=dev', '--include=optional'], process.execPath, process.env);
  // Under an old Node, npm skips optional packages that need a newer one, such as the linter's binary.
  if (!isNewEnough()) await npm(['install', '--no-save'], nodeOfRepository(), environment());
  fs.mkdirSync(inRoot('node_modules'), { recursive: true });
  fs.writeFileSync(installStamp, digest(readLock()));
}

const unreachable = /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH)\b/;
const noRoom = /\bENOSPC\b/;

function npm(command, node, env) {
  const args = [...command, '--no-audit', '--no-fund', '--loglevel=error'];
  const cli = process.env.npm_execpath;
  const [file, first] = cli?.endsWith('.js') ? [node, [cli]] : ['npm', []];
  return runStep({ name: `npm ${command[0]}`, file, args: [...first, ...args], env, said: inOneSentence });
}

/** Returns undefined if npm's own message is good enough. */
function inOneSentence(printed) {
  if (unreachable.test(printed))
    return 'the npm registry is unreachable. Check the network and the proxy (npm config get proxy), then re-run the command.';
  return noRoom.test(printed) ? 'the disk is full. Free some space, then re-run the command.' : undefined;
}

function isNewEnough() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
}

/** Returns the Node in `node_modules`, or the current one if it is new enough. */
export function nodeOfRepository() {
  const own = path.join(bin, 'node');
  if (fs.existsSync(own)) return own;
  if (isNewEnough()) return process.execPath;
  throw new Failure(`Node ${oldestNode.join('.')} or later is required; this is ${process.versions.node}.`);
}

const buildStamp = inRoot('dist', 'meta', 'build.stamp');
const template = inRoot('cdk.out', 'relay.template.json');

/** The files and folders that `infra/build/build-functions.ts` and `infra/stack/app.ts` read. */
const inputs = [
  'functions',
  'shared',
  'infra',
  'package.json',
  'package-lock.json',
  'cdk.json',
  'relay.json',
  'tsconfig.json',
];
/** Folders inside `infra` that the build does not read: the local stack, the command line, the deployment. */
const notInputs = new Set(['infra/local', 'infra/ops/cli/commands', 'infra/deploy']);

/** Lists every input file below a folder, in a fixed order. */
function filesOf(name) {
  const stat = fs.statSync(inRoot(name), { throwIfNoEntry: false });
  if (stat === undefined || notInputs.has(name)) return [];
  if (!stat.isDirectory()) return [name];
  // oxlint-disable-next-line unicorn/no-array-sort -- Node 18 has no toSorted.
  const entries = fs.readdirSync(inRoot(name)).sort();
  return entries.flatMap((entry) => filesOf(`${name}/${entry}`));
}

/**
 * Hashes the inputs of the build and the template. The template is included because a synthesis for another
 * stage overwrites it.
 */
function buildState() {
  const hash = createHash('sha256');
  for (const file of inputs.flatMap(filesOf))
    hash
      .update(`${file}\0`)
      .update(fs.readFileSync(inRoot(file)))
      .update('\0');
  return `${hash.digest('hex')} ${digest(read(template) ?? '')}`;
}

const isBuilt = () => read(buildStamp) === buildState();

export const build = () =>
  runStep({
    name: 'the build',
    file: nodeOfRepository(),
    args: ['infra/build/build-functions.ts'],
    env: environment(),
  });

async function buildAndSynthesize() {
  await build();
  const fresh = inRoot('dist', `cdk.${process.pid}.new`);
  try {
    await runStep({
      name: 'the synthesis',
      file: nodeOfRepository(),
      args: ['infra/stack/app.ts'],
      env: environment({ CDK_OUTDIR: fresh, CDK_VALIDATION: 'false' }),
    });
    moveInto(fresh, inRoot('cdk.out'));
  } finally {
    fs.rmSync(fresh, { recursive: true, force: true });
  }
  fs.writeFileSync(buildStamp, buildState());
}

/**
 * Moves new files into the folder and keeps the others, because a running stack still reads its own assets.
 * Moves assets before the template that refers to them.
 */
function moveInto(from, to) {
  fs.mkdirSync(to, { recursive: true });
  const entries = fs.readdirSync(from, { withFileTypes: true });
  for (const entry of [
    ...entries.filter((e) => e.isDirectory()),
    ...entries.filter((e) => !e.isDirectory()),
  ]) {
    const target = path.join(to, entry.name);
    const old = `${target}.${process.pid}.old`;
    if (entry.isDirectory() && fs.existsSync(target)) fs.renameSync(target, old);
    fs.renameSync(path.join(from, entry.name), target);
    fs.rmSync(old, { recursive: true, force: true });
  }
}
