import type { Reported } from './stage.ts';

const unreported: Reported = { ended: false, notStored: false, notKept: false };

/** The request lines of a log. */
export class StackLog {
  readonly #reported = new Map<string, Reported>();
  #rest = '';

  /** The next piece of the log. */
  heard(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#take(line);
  }

  reported(requestId: string): Reported {
    return this.#reported.get(requestId) ?? unreported;
  }

  #take(line: string): void {
    const id = /"request_id":"(\w+)"/.exec(line)?.[1];
    const message = /"message":"(\w+)"/.exec(line)?.[1];
    if (id === undefined || message === undefined) return;
    const reported = this.#reported.get(id) ?? unreported;
    if (message === 'request') this.#reported.set(id, { ...reported, ended: true });
    if (message === 'response_not_stored') this.#reported.set(id, { ...reported, notStored: true });
    if (message === 'result_not_kept') this.#reported.set(id, { ...reported, notKept: true });
  }
}
