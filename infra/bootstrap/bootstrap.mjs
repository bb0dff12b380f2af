/**
 * What every npm script runs through: installs when the lock file changed, builds and synthesizes when their inputs
 * changed, then runs the command under the repository's Node. Plain JavaScript: the Node that starts it may be 18.
 *
 *     node infra/bootstrap/bootstrap.mjs <file.ts | tool of node_modules/.bin> [argument...]
 *
 * Says nothing on stdout: `npm run app` hands that to CDK.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const inRoot = (...names) => path.join(root, ...names);
const bin = inRoot('node_modules', '.bin');
const installStamp = inRoot('node_modules', '.relay-install');
const buildStamp = inRoot('dist', 'meta', 'first-step.stamp');
const template = inRoot('cdk.out', 'relay.template.json');
const oldestNode = [22, 19];

/** What `infra/build/build-functions.ts` and `infra/stack/app.ts` read; the local runner and the operators' tool are not part of it. */
const inputs = [
  'functions',
  'shared',
  'infra',
  'package.json',
  'package-lock.json',
  'cdk.json',
  'tsconfig.json',
];
const notInputs = new Set(['infra/local', 'infra/ops']);
/** These build by themselves, or need nothing that is built. */
const withoutBuild = new Set([
  'infra/build/build-functions.ts',
  'infra/stack/app.ts',
  'infra/ops/cli/main.ts',
  'oxfmt',
  'oxlint',
  'knip',
  'tsc',
]);

class Failure extends Error {}

const say = (line) => process.stderr.write(`${line}\n`);
const digest = (content) => createHash('sha256').update(content).digest('hex');
const read = (file) => {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
};

let child;
let isCommand = false;
function pass(signal) {
  // Ctrl-C in a terminal has reached the whole process group already.
  const delivered = signal === 'SIGINT' && process.stdin.isTTY;
  if (child !== undefined && !delivered && (isCommand || signal !== 'SIGUSR2')) child.kill(signal);
  if (!isCommand && signal !== 'SIGUSR2') process.exit(128 + os.constants.signals[signal]);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']) process.on(signal, () => pass(signal));

// A signal to npm may end npm's shell, which passes nothing on: then we are orphans, and nobody can end us.
if (process.env.npm_lifecycle_event !== undefined) {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    pass('SIGTERM');
  }, 50);
  watch.unref();
}

/** Resolves with the exit code, 128 + n after signal n. */
function run(file, args, options) {
  return new Promise((resolve, reject) => {
    child = spawn(file, args, { cwd: root, ...options });
    options.output?.(child);
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? 128 + os.constants.signals[signal]));
  });
}

/** A step of ours: what it prints is shown only when it fails. */
async function runQuietly(name, file, args, env) {
  let printed = '';
  const collect = (text) => {
    printed += text;
  };
  const code = await run(file, args, {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    output: ({ stdout, stderr }) => [stdout, stderr].forEach((stream) => stream.on('data', collect)),
  });
  // The first lines say what is wrong; npm's go on with all its options.
  const lines = printed.trimEnd().split('\n').slice(0, 40);
  if (code !== 0) throw new Failure([...lines, `${name} failed (exit ${code}).`].join('\n'));
}

function nodeOfRepository() {
  const own = path.join(bin, 'node');
  if (fs.existsSync(own)) return own;
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])) return process.execPath;
  throw new Failure(
    `Node ${oldestNode.join('.')} or later is wanted here; this is ${process.versions.node}.`,
  );
}

const environment = (extra) => ({
  ...process.env,
  PATH: [bin, process.env.PATH ?? ''].join(path.delimiter),
  ...extra,
});

/** True when the installed packages are those of the lock file, however they were installed. */
function isInstalled(lock) {
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

async function install(lock) {
  say('installing packages; the first time takes about a minute');
  const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const npm = process.env.npm_execpath;
  const [file, first] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []];
  await runQuietly('npm ci', file, [...first, ...args], process.env);
  fs.mkdirSync(inRoot('node_modules'), { recursive: true });
  fs.writeFileSync(installStamp, digest(lock));
}

/** Every input file below a folder, in a fixed order. */
function filesOf(name) {
  const stat = fs.statSync(inRoot(name), { throwIfNoEntry: false });
  if (stat === undefined || notInputs.has(name)) return [];
  if (!stat.isDirectory()) return [name];
  // oxlint-disable-next-line unicorn/no-array-sort -- Node 18 has no toSorted.
  const entries = fs.readdirSync(inRoot(name)).sort();
  return entries.flatMap((entry) => filesOf(`${name}/${entry}`));
}

/** Names the build's inputs and its outcome; the template may have been written over with another stage's. */
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

async function buildAndSynthesize(node) {
  say('building and synthesizing');
  await runQuietly('the build', node, ['infra/build/build-functions.ts'], environment());
  const fresh = inRoot('dist', `cdk.${process.pid}.new`);
  try {
    await runQuietly(
      'the synthesis',
      node,
      ['infra/stack/app.ts'],
      environment({ CDK_OUTDIR: fresh, CDK_VALIDATION: 'false' }),
    );
    moveInto(fresh, inRoot('cdk.out'));
  } finally {
    fs.rmSync(fresh, { recursive: true, force: true });
  }
  fs.writeFileSync(buildStamp, buildState());
}

/** Adds to what is there: a stack that runs now still reads its own assets. The template comes after its assets. */
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

/** One first step at a time prepares; the lock of a process that has died counts as none. */
async function withLock(work) {
  const file = path.join(os.tmpdir(), `relay-first-step-${digest(root).slice(0, 16)}.lock`);
  let told = false;
  while (!takeLock(file)) {
    if (!told) say('waiting for another run that installs or builds');
    told = true;
    await sleep(100);
  }
  const release = () => fs.rmSync(file, { force: true });
  process.once('exit', release);
  try {
    return await work();
  } finally {
    process.off('exit', release);
    release();
  }
}

function takeLock(file) {
  try {
    fs.writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  const holder = Number(read(file));
  if (holder > 0 && !isAlive(holder)) fs.rmSync(file, { force: true });
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

async function prepare(command) {
  const lock = fs.readFileSync(inRoot('package-lock.json'), 'utf8');
  const ready = () => isInstalled(lock) && (withoutBuild.has(command) || isBuilt());
  if (ready()) return;
  await withLock(async () => {
    if (!isInstalled(lock)) await install(lock);
    if (!withoutBuild.has(command) && !isBuilt()) await buildAndSynthesize(nodeOfRepository());
  });
}

async function runCommand(command, args) {
  const node = nodeOfRepository();
  const [file, first] = /\.[cm]?ts$/.test(command) ? [node, [command]] : [path.join(bin, command), []];
  // The local stack holds on to this channel: it ends even when nothing can tell it to.
  const stdio = command === 'infra/local/main.ts' ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit';
  const start = () => {
    isCommand = true;
    return run(file, [...first, ...args], { env: environment(), stdio });
  };
  if (command !== 'infra/stack/app.ts') return start();
  // CDK reads the template that this writes: nobody else may build meanwhile.
  return withLock(async () => {
    await runQuietly('the build', node, ['infra/build/build-functions.ts'], environment());
    return start();
  });
}

const [command, ...args] = process.argv.slice(2);
try {
  if (command === undefined)
    throw new Failure('usage: node infra/bootstrap/bootstrap.mjs <command> [argument...]');
  await prepare(command);
  process.exitCode = await runCommand(command, args);
} catch (error) {
  say(error instanceof Failure ? error.message : String(error.stack));
  process.exitCode = 1;
}
