/** Reads attributes of a row from the command line: `input=0.018`, `models=gpt-4o,gpt-4o-mini`, `from=`. */
import { usageFailure } from '../../../../shared/operate/operator-failure.ts';
import type { RawRow } from '../../../../shared/operate/row-tables.ts';

export const attributesMean =
  'NAME=VALUE each, named as in docs/tables.md; a value is JSON or else text, models may be a,b; NAME= removes it';

/** Attributes whose text is a list of names. */
const lists = new Set(['models']);

export function parseAttributes(written: readonly string[]): RawRow {
  if (written.length === 0) throw usageFailure('give one attribute at least, such as input=0.018');
  return Object.fromEntries(
    written.map((pair) => {
      const [, name, value] = /^([a-z][a-z0-9_]*)=(.*)$/s.exec(pair) ?? [];
      if (name === undefined || value === undefined)
        throw usageFailure('an attribute is written NAME=VALUE, such as input=0.018');
      return [name, valueOf(name, value)];
    }),
  );
}

function valueOf(name: string, value: string): unknown {
  if (value === '') return undefined;
  const read = jsonOrText(value);
  return lists.has(name) && typeof read === 'string' ? read.split(',').map((item) => item.trim()) : read;
}

/** Text that is no JSON is meant as it stands. */
export function jsonOrText(value: string): unknown {
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}
