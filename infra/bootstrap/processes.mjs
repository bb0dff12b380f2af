/** Runs child processes in turn, forwards signals to them, and ends when npm, its parent, has ended. */
import { spawn } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { bin, root } from './repository.mjs';

/** An error whose message is printed without a stack trace. */
export class Failure extends Error {}

/** Prints on stderr, because stdout is reserved for the output of the command. */
export const print = (line) => process.stderr.write(`${line}\n`);

/** The environment with `node_modules/.bin` first on the PATH, so that its tools and its Node are used. */
export const environment = (extra) => ({
  ...process.env,
  PATH: [bin, process.env.PATH ?? ''].join(path.delimiter),
  ...extra,
});

let child;
let isCommand = false;

function pass(signal) {
  // Ctrl-C in a terminal sends SIGINT to the whole process group, so the child already has it.
  const delivered = signal === 'SIGINT' && process.stdin.isTTY;
  if (child !== undefined && !delivered && (isCommand || signal !== 'SIGUSR2')) child.kill(signal);
  if (!isCommand && signal !== 'SIGUSR2') process.exit(128 + os.constants.signals[signal]);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']) process.on(signal, () => pass(signal));

// A signal to npm may end npm's shell, which does not forward it. This process is then an orphan that
// receives no signal, so it checks for a changed parent.
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

/** Runs the command that the caller asked for. From here on every signal is forwarded to it. */
export function runCommand(file, args, stdio) {
  isCommand = true;
  return run(file, args, { env: environment(), stdio });
}

/** Runs a preparation step. Its output is shown only when it fails. */
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
  // The first lines contain the error; after them npm lists all its options.
  const lines = printed.trimEnd().split('\n').slice(0, 40);
  if (code !== 0) throw new Failure([...lines, `${name} failed (exit ${code}).`].join('\n'));
}
