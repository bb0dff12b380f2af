/**
 * Every operators' action that writes has two functions. `plan(...)` reads and returns a `Plan`;
 * `carryOut(plan)` writes and returns the result. Neither prints or asks: faces show `effect`, ask
 * `questions` and print the result.
 */
import { formatYuan, parseYuan, type NanoYuan } from '../billing/money.ts';
import type { RowProblem, RowReading } from '../config/rows/read-row.ts';

/** The effect of an action before it is carried out. Planning writes nothing. */
export interface Plan<Change> {
  /** The writes, in order, as data; empty: nothing to do. */
  changes: Change[];
  /** The effect of the writes, in sentences for the operator. */
  effect: string[];
  /** Questions to confirm before the writes; empty: no confirmation is needed. */
  questions: string[];
  /** Notes about the result that need no answer. */
  warnings?: string[];
  /** Why the plan may be shown but not carried out. `carryOut` throws a Failure with this message. */
  refusal?: string;
  /** Its rows are written in one transaction, or none is. */
  together?: true;
}

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
export function requireValid<Row>(
  reading: RowReading<Row>,
  prefix = '',
): Exclude<RowReading<Row>, RowProblem> {
  if ('problem' in reading) throw usageFailure(`${prefix}${reading.problem}`);
  return reading;
}

/** A name of a row as one word of a command to copy: names may have blanks, and what a shell would run. */
export const quoteShellWord = (text: string): string =>
  /^[\w.@%+=:,/-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** The stack option for a command to copy; without it, the command would use the local tables. */
export const formatStackOption = ({ stack, local }: { stack: string; local: boolean }): string =>
  local ? '' : ` --stack ${stack}`;

/** Describes the stack in the head of a page: `relay-test (stage test)`. */
export const describeStack = ({ stack, local }: { stack: string; local: boolean }): string => {
  const [, stage] = /^relay-(.+)$/.exec(stack) ?? [];
  return `${stack}${stage === undefined ? '' : ` (stage ${stage})`}${local ? ', local tables' : ''}`;
};

/** Formats an exact amount for people, with at least two decimals: `¥0.36`, `−¥1,202.50`. All screens and commands use this form. */
export function formatMoney(amount: NanoYuan): string {
  const [whole = '', fraction = ''] = formatYuan(amount < 0n ? -amount : amount).split('.');
  return `${amount < 0n ? '−' : ''}¥${formatInteger(BigInt(whole))}.${fraction.padEnd(2, '0')}`;
}

/** Formats an amount of a row. An invalid one is shown as it was written. */
export function formatWrittenMoney(written: string | number): string {
  const amount = parseYuan(written);
  return amount === undefined ? `¥${written}` : formatMoney(amount);
}

/** 12345678 -> `12,345,678`. */
export const formatInteger = (count: number | bigint): string =>
  String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ',');

/** `1 call`, `1,234 calls`. */
export const formatCount = (count: number, one: string, more = `${one}s`): string =>
  `${formatInteger(count)} ${count === 1 ? one : more}`;
