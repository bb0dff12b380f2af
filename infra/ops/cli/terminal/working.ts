/** Says every 2 seconds that a command still works, as long as nothing else was printed and nobody is asked. */
import type { Terminal } from './terminal.ts';

const everyMs = 2000;

/** @param what is worked at, such as the command's words */
export async function whileWorking<Result>(
  terminal: Terminal,
  what: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const startedMs = performance.now();
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startedMs) / 1000);
    if (terminal.isSilent(everyMs)) terminal.remark(`... ${what}: ${seconds} s`);
  }, everyMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
