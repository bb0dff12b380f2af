/** Why the value of a field is not used: field, found, wanted. */
import * as z from 'zod/mini';
import { nearestName } from './nearest-name.ts';
import type { FieldProblem } from './option-checks.ts';
import { optionNamed, optionNames, refusedFields } from './option-table.ts';

const shownCharactersMax = 100;

export function fieldProblems(name: string, value: unknown): FieldProblem[] {
  const option = optionNamed(name);
  if (option === undefined)
    return [
      { field: name, problem: unknownProblem(name, optionNames, 'an option; docs/options.md lists them') },
    ];
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
  const { schema } = optionNamed(name) ?? {};
  return schema instanceof z.ZodMiniObject ? Object.keys(schema._zod.def.shape) : [];
}

function quoted(found: unknown): string {
  const written = JSON.stringify(found) ?? 'nothing';
  return written.length > shownCharactersMax ? `${written.slice(0, shownCharactersMax)}…` : written;
}
