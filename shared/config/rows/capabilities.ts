/** Capabilities that a probe found, from the attribute `_can` that `relay-ops channel test` writes. */
import * as z from 'zod/mini';
import { isRecord, parseJson } from '../../wire/json.ts';
import { flag, attributeOf, plainValue } from './read-row.ts';

const names = z.array(z.string('a list of texts'), 'a list of texts');
const fields = {
  /** The public name of the model that was asked. Without it, the findings hold for all models of the row. */
  model: z.string('the name of a model'),
  tools: flag,
  parallel_tools: flag,
  json_schema: flag,
  images: flag,
  usage_streaming: flag,
  system_anywhere: flag,
  efforts: names,
  dialects: names,
};
type Fields = typeof fields;

/** A missing field is unknown. */
export type Capabilities = { -readonly [Name in keyof Fields]?: z.output<Fields[Name]> };

/** Reads `_can` as a map or as JSON text. An unreadable field is a warning, because `_can` must not make a row invalid. */
export function readCapabilities(raw: unknown): { can?: Capabilities; warnings: string[] } {
  const mark = attributeOf(raw, '_can');
  if (mark === undefined || mark === null) return { warnings: [] };
  const written = plainValue(typeof mark === 'string' ? parseJson(mark) : mark);
  if (!isRecord(written)) return { warnings: ['_can: invalid, expected the findings of a probe'] };
  const warnings: string[] = [];
  const read = Object.entries(written).filter(([name, value]) => {
    const field = Object.hasOwn(fields, name) ? fields[name as keyof Fields] : undefined;
    const problem = field && z.safeParse(field, value).error?.issues[0]?.message;
    if (!field) warnings.push(`_can.${name.slice(0, 40)}: unknown`);
    else if (problem !== undefined) warnings.push(`_can.${name}: invalid, expected ${problem}`);
    return field && problem === undefined;
  });
  const can: Capabilities = z.parse(z.partial(z.object(fields)), Object.fromEntries(read));
  return read.every(([name]) => name === 'model') ? { warnings } : { can, warnings };
}

export const appliesTo = ({ model }: Capabilities, asked: string): boolean =>
  model === undefined || model === asked;
