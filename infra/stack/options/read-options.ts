/** Reads the options of a stage. Reports every problem of the file at once, each with the name of its field. */
import * as z from 'zod/mini';
import { optionChecks, type FieldProblem } from './option-checks.ts';
import { optionNames, options, refusedFields, type OptionName, type StageOptions } from './option-table.ts';
import type { Stage } from './stage.ts';
import { nearestName } from './nearest-name.ts';

const shownCharactersMax = 100;

/**
 * @param content what the file of the stage says, as JSON
 * @returns the options that are given, without defaults. Throws an Error that names all problems.
 */
export function readOptions(stage: Stage, content: unknown): StageOptions {
  const { file } = stage;
  const parsed = z.safeParse(z.record(z.string(), z.unknown()), content);
  if (!parsed.success || Array.isArray(content))
    throw new Error(`${file}: wanted one JSON object of options`);
  const { $schema: _, ...given } = parsed.data;
  const problems = Object.entries(given).flatMap(([name, value]) => fieldProblems(name, value));
  // A rule about two fields says nothing new about a field that has a problem of its own.
  const found = problems.length === 0 ? optionChecks(given, stage) : [];
  const all = [...problems, ...found].map(({ field, problem }) => `  ${field}: ${problem}`);
  if (all.length > 0)
    throw new Error(
      [`${file} has ${all.length === 1 ? 'a problem' : `${all.length} problems`}:`, ...all].join('\n'),
    );
  return given;
}

function fieldProblems(name: string, value: unknown): FieldProblem[] {
  const option = options[name];
  if (option === undefined)
    return [{ field: name, problem: unknownProblem(name, optionNames, 'an option; docs/options.md lists them') }];
  const parsed = z.safeParse(option.schema, value);
  return parsed.success ? [] : parsed.error.issues.flatMap((issue) => issueProblems(issue, name, value));
}

function issueProblems(issue: z.core.$ZodIssue, name: string, value: unknown): FieldProblem[] {
  const field = [name, ...issue.path].map((step) =>
    typeof step === 'number' ? `[${step}]` : `.${String(step)}`,
  );
  const written = field.join('').slice(1);
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      field: `${written}.${key}`,
      problem: unknownProblem(key, fieldsOf(name), `a field of ${name}`),
    }));
  let found: unknown = value;
  for (const step of issue.path) found = (found as Record<PropertyKey, unknown>)[step];
  return [{ field: written, problem: `found ${quoted(found)}, wanted ${issue.message}` }];
}

function unknownProblem(name: string, names: readonly string[], wanted: string): string {
  const reason = refusedFields.get(name);
  if (reason !== undefined) return `refused: ${reason}`;
  const nearest = nearestName(name, names);
  return nearest === undefined ? `not ${wanted}` : `not an option; did you mean ${nearest}?`;
}

/** The fields of an option that is a map. */
function fieldsOf(name: string): string[] {
  const { schema } = options[name] ?? {};
  return schema instanceof z.ZodMiniObject ? Object.keys(schema._zod.def.shape) : [];
}

function quoted(found: unknown): string {
  const written = JSON.stringify(found) ?? 'nothing';
  return written.length > shownCharactersMax ? `${written.slice(0, shownCharactersMax)}…` : written;
}

/** The value of an option, else its default. Throws for an option that has neither, which is a mistake of the caller. */
export function valueOf<Name extends OptionName>(
  given: StageOptions,
  name: Name,
): NonNullable<StageOptions[Name]> {
  const value = given[name] ?? (options[name]?.default as StageOptions[Name]);
  if (value === undefined) throw new Error(`option ${name} has no default`);
  return value;
}
