/** Reports the progress of long work every 2 seconds. Shorter work prints nothing. */
import type { Terminal } from './terminal.ts';

const everyMs = 2000;

/** @param what the things that are counted, such as `ledger rows read` */
export function countProgress(terminal: Terminal, what: string): (count: number) => void {
  let total = 0;
  let remarkedMs = performance.now();
  return (count) => {
    total += count;
    if (performance.now() - remarkedMs < everyMs) return;
    remarkedMs = performance.now();
    terminal.remark(`... ${total} ${what}`);
  };
}

/** @param what is done with what is named; `hint` comes before its name again */
export function nameProgress(terminal: Terminal, what: string, hint: string): (name: string) => void {
  let remarkedMs = performance.now();
  return (name) => {
    if (performance.now() - remarkedMs < everyMs) return;
    remarkedMs = performance.now();
    terminal.remark(`... ${what} ${name} (${hint} '${name}')`);
  };
}
