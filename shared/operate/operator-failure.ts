/** Expected failures of operators' actions. */
import type { RowProblem, RowReading } from '../config/rows/read-row.ts';

/** The exit code of what the credentials do not allow. */
export const deniedExitCode = 3;

/** An expected failure. Its message states what is wrong and what to do. The exit code is `exitCode`. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly exitCode: 1 | 2 | 3;

  /** @param exitCode 1: the action failed; 2: the command line is invalid; 3: the credentials do not allow it */
  constructor(message: string, exitCode: 1 | 2 | 3 = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const usageFailure = (message: string): Failure => new Failure(message, 2);

/** Returns the reading of a valid row. Throws a usage failure for a row with a problem. */
export function usable<Row>(reading: RowReading<Row>, prefix = ''): Exclude<RowReading<Row>, RowProblem> {
  if ('problem' in reading) throw usageFailure(`${prefix}${reading.problem}`);
  return reading;
}
