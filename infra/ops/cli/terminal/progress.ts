import { remark } from './terminal.ts';

const everyMs = 2000;

/** Says now and then how far a long piece of work has come; a short one says nothing. */
export class Progress {
  readonly #what: string;
  #count = 0;
  #saidMs = performance.now();

  /** @param what what is counted: `ledger rows read` */
  constructor(what: string) {
    this.#what = what;
  }

  add(count: number): void {
    this.#count += count;
    if (performance.now() - this.#saidMs < everyMs) return;
    this.#saidMs = performance.now();
    remark(`... ${this.#count} ${this.#what}`);
  }
}
