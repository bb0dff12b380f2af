/** Rules about several options together. */
import type { StageOptions } from './option-table.ts';

export interface FieldProblem {
  field: string;
  problem: string;
}

type Check = (options: StageOptions) => FieldProblem | undefined | false;

const needs = (
  options: StageOptions,
  field: keyof StageOptions,
  needed: keyof StageOptions,
): FieldProblem | false =>
  options[field] !== undefined &&
  options[needed] === undefined && { field, problem: `needs ${needed} beside it` };

const checks: readonly Check[] = [
  (options) => needs(options, 'domain', 'certificateArn'),
  (options) => needs(options, 'certificateArn', 'domain'),
];

export const optionChecks = (options: StageOptions): FieldProblem[] =>
  checks.flatMap((check) => check(options) || []);
