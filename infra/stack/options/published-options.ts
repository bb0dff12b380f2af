/** Publishes the options as outputs of the stack, so that the next deployment can't drop one by mistake. */
import { isDeepStrictEqual } from 'node:util';
import { isRecord, parseJson } from '../../../shared/wire/json.ts';
import { findOption, optionNames, type StageOptions } from './option-table.ts';

/** Options that differ from their defaults, name to value. Each field of a map has an entry of its own: `memory.chat`. */
export type PublishedOptions = Record<string, unknown>;

/** A safe size for the value of an output. A longer text takes several outputs. */
const outputCharactersMax = 1000;

const outputName = /^Options(\d*)$/;

export const selectPublishedOptions = (given: StageOptions): PublishedOptions =>
  Object.fromEntries(
    Object.entries(selectWrittenOptions(given)).filter(
      ([name, value]) => !isDeepStrictEqual(value, findOption(name)?.default),
    ),
  );

/** Includes options that the file sets to their defaults. */
export function selectWrittenOptions(given: StageOptions): PublishedOptions {
  const named = optionNames.flatMap((name): [string, unknown][] => {
    const value: unknown = given[name];
    if (value === undefined) return [];
    return isRecord(value)
      ? Object.entries(value).map(([field, each]) => [`${name}.${field}`, each])
      : [[name, value]];
  });
  return Object.fromEntries(named);
}

/** Returns name and value of each output: `Options`, then `Options2` and so on if the text is long. */
export function writeOutputs(published: PublishedOptions): [name: string, value: string][] {
  const written = JSON.stringify(published);
  const parts = written.match(new RegExp(`.{1,${outputCharactersMax}}`, 'gsu')) ?? [];
  return parts.map((part, index) => [index === 0 ? 'Options' : `Options${index + 1}`, part]);
}

/**
 * Reads the options that a stack published. A stack of another repository published none. Throws an Error if the text is
 * invalid.
 */
export function readOutputs(outputs: ReadonlyMap<string, string>): PublishedOptions | undefined {
  const parts = [...outputs].flatMap(([name, value]) => {
    const [found, number] = outputName.exec(name) ?? [];
    return found === undefined ? [] : [[Number(number || 1), value] as const];
  });
  if (parts.length === 0) return undefined;
  const written = parts.toSorted(([a], [b]) => a - b).map(([, value]) => value);
  const found = parseJson(written.join(''));
  if (!isRecord(found)) throw new Error('its outputs Options are not a JSON object');
  return found;
}
