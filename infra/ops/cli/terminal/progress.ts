/** Reports now and then how far a long piece of work has come; a short one prints nothing. */
import { remark, type Terminal } from './terminal.ts';

const everyMs = 2000;

/** @param what what is counted: `ledger rows read` */
export function countProgress(terminal: Terminal, what: string): (count: number) => void {
  let total = 0;
  let toldMs = performance.now();
  return (count) => {
    total += count;
    if (performance.now() - toldMs < everyMs) return;
    toldMs = performance.now();
    terminal.remark(`... ${total} ${what}`);
  };
}

// Until every command takes its terminal as an argument: goes with its last user.
export class Progress {
  readonly add: (count: number) => void;

  constructor(what: string) {
    const silent = { print() {}, printJson() {}, printTable() {}, printCsv() {}, isAttended: false };
    const none = async (): Promise<never> => Promise.reject(new Error(what));
    this.add = countProgress(
      { ...silent, remark, confirm: none, ask: none, askHidden: none, readInput: none },
      what,
    );
  }
}
