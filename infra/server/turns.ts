/**
 * Lets large bodies be worked on one in each turn of the event loop. Twenty of them in one turn take a second or two, in
 * which no reply of the store is read, and the time-outs of every other call run: they would all be refused.
 */
export class Turns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves in a turn of the event loop in which nobody else's does. */
  next(): Promise<void> {
    this.#last = this.#last.then(
      () =>
        new Promise((resolve) => {
          setImmediate(resolve);
        }),
    );
    return this.#last;
  }
}
