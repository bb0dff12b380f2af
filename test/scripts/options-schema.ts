/**
 * The JSON schema beside the files of stages, for editors, made of the table of options: run it to write relay.schema.json. The reader
 * checks more than a schema can say.
 */
import { writeFileSync } from 'node:fs';
import * as z from 'zod/mini';
import { findOption, optionNames } from '../../infra/stack/options/option-table.ts';

export function optionsSchema(): object {
  const properties = optionNames.flatMap((name) => {
    const option = findOption(name);
    if (option === undefined) return [];
    const { $schema: _, ...rules } = z.toJSONSchema(mapOf(option.schema), { io: 'input' });
    const standard = option.default === undefined ? {} : { default: option.default };
    return [[name, { description: option.what, ...standard, ...rules }] as const];
  });
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Options of a stage of the relay',
    description: 'docs/options.md explains each. The file holds no secrets.',
    type: 'object',
    properties: { $schema: { type: 'string' }, ...Object.fromEntries(properties) },
    additionalProperties: false,
  };
}

/** Of a map that is checked to be one before it is read: the map. What it is checked by has no words in such a schema. */
const mapOf = (schema: z.core.$ZodType): z.core.$ZodType =>
  schema instanceof z.ZodMiniPipe && schema._zod.def.in instanceof z.ZodMiniCustom
    ? schema._zod.def.out
    : schema;

if (import.meta.main) writeFileSync('relay.schema.json', `${JSON.stringify(optionsSchema(), null, 2)}\n`);
