/** The work that has begun and not ended: answers, and what settles them after their last byte. */
export class InFlight {
  readonly #work = new Set<Promise<void>>();
  #idle = Promise.withResolvers<void>();

  get count(): number {
    return this.#work.size;
  }

  add(work: Promise<void>): void {
    this.#work.add(work);
    const ended = (): void => {
      this.#work.delete(work);
      if (this.#work.size > 0) return;
      this.#idle.resolve();
      this.#idle = Promise.withResolvers<void>();
    };
    work.then(ended, ended);
  }

  /** Whether all of it ends within the time. */
  async endsWithin(waitMs: number): Promise<boolean> {
    if (this.#work.size === 0) return true;
    const timeUp = Promise.withResolvers<void>();
    const timer = setTimeout(timeUp.resolve, waitMs);
    await Promise.race([this.#idle.promise, timeUp.promise]);
    clearTimeout(timer);
    return this.#work.size === 0;
  }
}
