/** Paths of the repository, and a runner of child processes that forwards signals and ends them after npm has ended. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
export const inRoot = (...names) => path.join(root, ...names);
export const bin = inRoot('node_modules', '.bin');

export const digest = (content) => createHash('sha256').update(content).digest('hex');

/** Returns undefined if the file can't be read. */
export function read(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** An error whose message is printed without a stack trace. */
export class Failure extends Error {}

/** Prints on stderr, because stdout is reserved for the output of the command. */
export const print = (line) => process.stderr.write(`${line}\n`);

/**
 * The environment with `node_modules/.bin` first on the PATH, so that its tools and its Node are used. Node keeps what it compiled:
 * a second `key list --help` takes 0.37 s instead of 0.72 s, a start of the local stack 1.1 s instead of 2.0 s, for 6 MB.
 */
export const environment = (extra) => ({
  NODE_COMPILE_CACHE: inRoot('node_modules', '.cache', 'node'),
  ...process.env,
  PATH: [bin, process.env.PATH ?? ''].join(path.delimiter),
  ...extra,
});

let child;
let isCommand = false;
let firstSignalMs;

/** True after the user asked to stop. Counters of seconds must stop too. */
export const isStopping = () => firstSignalMs !== undefined;

/** A signal to the process group and npm's copy of it count as one. */
const sameSignalMs = 300;
/** The time that a step or a command gets to end. */
const endingMs = 1000;

function pass(signal) {
  if (signal === 'SIGUSR2') {
    if (isCommand) child?.kill(signal);
    return;
  }
  const isFirst = !isStopping();
  const isAgain = !isFirst && Date.now() - firstSignalMs > sameSignalMs;
  firstSignalMs ??= Date.now();
  if (!isCommand) {
    if (isFirst || isAgain) endStep(signal, isAgain);
    return;
  }
  // Ctrl-C in a terminal sends SIGINT to the whole process group, so the child already has it.
  if (signal !== 'SIGINT' || !process.stdin.isTTY) child?.kill(signal);
  // The command ends itself at a second Ctrl-C, unless it hangs.
  if (isAgain) setTimeout(() => child?.kill('SIGKILL'), endingMs).unref();
}

/** Ends the running step with all processes of its group. */
function endStep(signal, isAgain) {
  const exit = () => process.exit(128 + os.constants.signals[signal]);
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) exit();
  killGroup(isAgain ? 'SIGKILL' : 'SIGTERM');
  if (isAgain) exit();
  if (process.stderr.isTTY) process.stderr.write('\r\u001B[K');
  print('stopped; the next run resumes here');
  child.once('exit', exit);
  setTimeout(() => {
    killGroup('SIGKILL');
    exit();
  }, endingMs);
}

function killGroup(signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // The process has ended meanwhile.
  }
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']) process.on(signal, () => pass(signal));

// A signal to npm may end npm's shell, which does not forward it. This process then becomes an orphan and gets no
// signal, so it checks for a changed parent.
if (process.env.npm_lifecycle_event !== undefined) {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    pass('SIGTERM');
  }, 50);
  watch.unref();
}

/** Resolves with the exit code, or 128 + n after signal n. */
function run(file, args, options) {
  return new Promise((resolve, reject) => {
    child = spawn(file, args, { cwd: root, ...options });
    options.output?.(child);
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? 128 + os.constants.signals[signal]));
  });
}

/** Runs the requested command, and forwards every signal to it. */
export function runCommand(file, args, { stdio, cwd = root }) {
  isCommand = true;
  return run(file, args, { env: environment(), stdio, cwd });
}

/** Runs a preparation step. Shows its output only if it fails and `said` has no message for the failure. */
/** @param {{ name: string, file: string, args: string[], env?: object, said?: (printed: string) => string | undefined }} step */
export async function runStep({ name, file, args, env, said }) {
  let printed = '';
  const collect = (text) => {
    printed += text;
  };
  const code = await run(file, args, {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    output: ({ stdout, stderr }) => [stdout, stderr].forEach((stream) => stream.on('data', collect)),
  });
  // The error is in the first lines. After them npm lists all its options.
  const lines = printed.trimEnd().split('\n').slice(0, 40);
  const words = code === 0 ? undefined : said?.(printed);
  if (words !== undefined) throw new Failure(`${name} failed: ${words}`);
  if (code !== 0) throw new Failure([...lines, `${name} failed (exit ${code}).`].join('\n'));
}
