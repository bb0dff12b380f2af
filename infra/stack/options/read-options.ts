/** Reads the options of a stage. Reports every problem of the file at once, each with the name of its field. */
import * as z from 'zod/mini';
import { optionChecks } from './option-checks.ts';
import { fieldProblems } from './option-problems.ts';
import { optionNamed, type OptionName, type StageOptions } from './option-table.ts';
import type { Stage } from './stage.ts';

/**
 * @param content what the file of the stage says, as JSON
 * @returns the options that are given, without defaults. Throws an Error that names all problems.
 */
export function readOptions({ file }: Stage, content: unknown): StageOptions {
  const parsed = z.safeParse(z.record(z.string(), z.unknown()), content);
  if (!parsed.success || Array.isArray(content))
    throw new Error(`${file}: wanted one JSON object of options`);
  const { $schema: _, ...given } = parsed.data;
  const problems = Object.entries(given).flatMap(([name, value]) => fieldProblems(name, value));
  // A rule about two fields says nothing new about a field that has a problem of its own.
  const found = problems.length === 0 ? optionChecks(given) : [];
  const all = [...problems, ...found].map(({ field, problem }) => `  ${field}: ${problem}`);
  if (all.length > 0)
    throw new Error(
      [`${file} has ${all.length === 1 ? 'a problem' : `${all.length} problems`}:`, ...all].join('\n'),
    );
  return given;
}

/** The value of an option, else its default. Throws for an option that has neither, which is a mistake of the caller. */
export function valueOf<Name extends OptionName>(
  given: StageOptions,
  name: Name,
): NonNullable<StageOptions[Name]> {
  const value = given[name] ?? (optionNamed(name)?.default as StageOptions[Name]);
  if (value === undefined) throw new Error(`option ${name} has no default`);
  return value;
}
