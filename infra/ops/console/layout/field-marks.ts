/** The relay's marks of a row, at the fields that they name. */
import { errorsByField, type Field } from './form.ts';

export interface RowMarks {
  problem?: string | undefined;
  warning?: string | undefined;
}

export function withMarks(fields: readonly Field[], { problem = '', warning = '' }: RowMarks): Field[] {
  const [bad, warned] = [problem, warning].map((words) => errorsByField(words, fields));
  return fields.map((field): Field => {
    const [what, why] = [bad?.get(field.name), warned?.get(field.name)];
    if (what !== undefined) return { ...field, mark: { kind: 'bad', words: what } };
    return why === undefined ? field : { ...field, mark: { kind: 'warning', words: why } };
  });
}

/** The marks that name no field: they belong to the whole form. */
export const marksElsewhere = ({ problem, warning }: RowMarks, fields: readonly Field[]): string[] =>
  [problem, warning].filter(
    (words): words is string => words !== undefined && errorsByField(words, fields).size === 0,
  );
