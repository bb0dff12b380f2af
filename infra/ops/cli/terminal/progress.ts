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
