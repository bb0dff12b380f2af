/** Expected failures of operators' actions. */
import type { RowProblem, RowReading } from '../config/rows/read-row.ts';

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

/** A row that was read without a problem. Throws a usage failure for any other. */
export function usable<Row>(reading: RowReading<Row>, prefix = ''): Exclude<RowReading<Row>, RowProblem> {
  if ('problem' in reading) throw usageFailure(`${prefix}${reading.problem}`);
  return reading;
}
