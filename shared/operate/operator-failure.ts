/** An expected failure: its message tells the operator what is wrong and what to do; the process ends with `exitCode`. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly exitCode: 1 | 2;

  /** @param exitCode 1: it did not work out; 2: the command line asked for something that cannot be. */
  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const usageFailure = (message: string): Failure => new Failure(message, 2);
