/** Options as the deployed stack publishes them, so that the next deployment cannot forget one. */
import { isDeepStrictEqual } from 'node:util';
import { isRecord, parseJson } from '../../../shared/wire/json.ts';
import { findOption, optionNames, type StageOptions } from './option-table.ts';

/** Name to value: what differs from a stack without options. A field of a map stands for itself: `memory.chat`. */
export type PublishedOptions = Record<string, unknown>;

/** A safe size of an output's value. Longer texts are published in parts. */
const outputCharactersMax = 1000;

const outputName = /^Options(\d*)$/;

export const selectPublishedOptions = (given: StageOptions): PublishedOptions =>
  Object.fromEntries(
    Object.entries(selectWrittenOptions(given)).filter(
      ([name, value]) => !isDeepStrictEqual(value, findOption(name)?.default),
    ),
  );

/** Everything that a file says, defaults too. */
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

/** Name and value of the outputs that publish the options: `Options`, and for long ones `Options2` and so on. */
export function writeOutputs(published: PublishedOptions): [name: string, value: string][] {
  const written = JSON.stringify(published);
  const parts = written.match(new RegExp(`.{1,${outputCharactersMax}}`, 'gsu')) ?? [];
  return parts.map((part, index) => [index === 0 ? 'Options' : `Options${index + 1}`, part]);
}

/**
 * Reads the options that a stack publishes; a stack of another repository publishes none. Throws an Error if they
 * cannot be read.
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
