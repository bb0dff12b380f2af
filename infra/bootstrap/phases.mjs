/** Says what is being prepared: on a terminal a line that counts and how long each took, into a pipe one line for all. */
import { isStopping, print } from './processes.mjs';

const everyMs = 1000;

/** @param phases in their order; `doing` and `done` in few words: a line that wraps on a narrow terminal cannot be overwritten */
export async function runPhases(phases) {
  const isTerminal = process.stderr.isTTY;
  if (!isTerminal && phases.length > 0) print(phases.map(({ doing }) => doing).join(', then '));
  for (const phase of phases) await (isTerminal ? counted(phase) : phase.work());
}

async function counted({ doing, done, work }) {
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
