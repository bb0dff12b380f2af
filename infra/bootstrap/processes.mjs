/** Runs child processes one after the other, passes signals on to them, and ends when nobody is left to wait for us. */
import { spawn } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { bin, root } from './repository.mjs';

/** Shown as it is, without a stack trace. */
export class Failure extends Error {}

/** Prints on stderr: stdout belongs to the command. */
export const print = (line) => process.stderr.write(`${line}\n`);

/** The tools of `node_modules` come first on the PATH, its Node among them. */
export const environment = (extra) => ({
  ...process.env,
  PATH: [bin, process.env.PATH ?? ''].join(path.delimiter),
  ...extra,
});

let child;
let isCommand = false;

function pass(signal) {
  // Ctrl-C in a terminal has reached the whole process group already.
  const delivered = signal === 'SIGINT' && process.stdin.isTTY;
  if (child !== undefined && !delivered && (isCommand || signal !== 'SIGUSR2')) child.kill(signal);
  if (!isCommand && signal !== 'SIGUSR2') process.exit(128 + os.constants.signals[signal]);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']) process.on(signal, () => pass(signal));

// A signal to npm may end npm's shell, which passes nothing on: then we are orphans that no signal reaches any more.
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

/** The command that the caller asked for: from here on every signal is for it. */
export function runCommand(file, args, stdio) {
  isCommand = true;
  return run(file, args, { env: environment(), stdio });
}

/** A preparing step: what it prints is shown only when it fails. */
export async function runStep({ name, file, args, env }) {
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
