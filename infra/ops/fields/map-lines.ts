/**
 * Converts maps of a row to `name = value` lines and back, so that nobody has to type JSON: `temperature = 1`, `stop = ["a"]`. A value is
 * read as JSON if it is valid JSON, else as text. Every JSON value survives the round trip.
 */
import { plainValue } from '../../../shared/config/rows/read-row.ts';
import { usageFailure } from '../../../shared/operate/plan.ts';
import { asRecord, isRecord, parseJson } from '../../../shared/wire/json.ts';

export function formatLines(value: unknown, isNested = false): string {
  const entries = Object.entries(asRecord(plainValue(value, true)));
  return entries
    .flatMap(([name, inner]) =>
      isNested && isRecord(inner) && Object.keys(inner).length > 0
        ? Object.entries(inner).map(
            ([member, each]) => `${formatName(name)} ${formatName(member)} = ${formatText(each)}`,
          )
        : [`${formatName(name)} = ${formatText(inner)}`],
    )
    .join('\n');
}

const formatName = (name: string): string => (/^[^\s"=]+$/.test(name) ? name : JSON.stringify(name));

const formatText = (value: unknown): string =>
  typeof value === 'string' &&
  value !== '' &&
  value === value.trim() &&
  !/[\n\r]/.test(value) &&
  !isJson(value)
    ? value
    : JSON.stringify(value);

const isJson = (text: string): boolean => text === 'null' || parseJson(text) !== undefined;

/** An empty value removes the attribute, even from an invalid row, whose attributes are hidden. */
const readText = (text: string): unknown =>
  text === '' ? undefined : text === 'null' ? null : (parseJson(text) ?? text);

const namePattern = String.raw`("(?:[^"\\]|\\.)*"|[^\s"=]+)`;
const plainLine = new RegExp(String.raw`^${namePattern}\s*=\s*(.*)$`);
const nestedLine = new RegExp(String.raw`^${namePattern}\s+${namePattern}\s*=\s*(.*)$`);

export function parseLines(
  field: string,
  text: string,
  isNested = false,
): Record<string, unknown> | undefined {
  const made = new Map<string, unknown>();
  for (const line of text.split('\n').map((each) => each.trim())) {
    if (line === '') continue;
    const nested = isNested ? nestedLine.exec(line) : null;
    const [, first = '', ...rest] = nested ?? plainLine.exec(line) ?? [];
    const name = readName(first);
    // Do not quote the line: it may contain a secret.
    if (name === undefined || rest.length === 0)
      throw usageFailure(`${field}: write each line as ${isNested ? 'model rule' : 'name'} = value`);
    if (nested) {
      const [member = '', value = ''] = rest;
      const inner = made.get(name);
      made.set(name, {
        ...(isRecord(inner) ? inner : {}),
        [readName(member) ?? member]: readText(value),
      });
    } else {
      if (made.has(name)) throw usageFailure(`${field}: ${name} is listed twice`);
      made.set(name, readText(rest[0] ?? ''));
    }
  }
  return made.size === 0 ? undefined : Object.fromEntries(made);
}

function readName(text: string): string | undefined {
  if (!text.startsWith('"')) return text === '' ? undefined : text;
  const name = parseJson(text);
  return typeof name === 'string' ? name : undefined;
}
