/** Reports now and then how far a long piece of work has come; a short one prints nothing. */
import type { Terminal } from './terminal.ts';

const everyMs = 2000;

/** @param what what is counted: `ledger rows read` */
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
