/** The JSON schema beside the files of stages, for editors. The reader checks more than a schema can say. */
import * as z from 'zod/mini';
import { options } from './option-table.ts';

export function optionsSchema(): object {
  const properties = Object.entries(options).map(([name, { schema, what, default: standard }]) => {
    const { $schema: _, ...rules } = z.toJSONSchema(schema, { io: 'input' });
    return [
      name,
      { description: what, ...(standard !== undefined && { default: standard }), ...rules },
    ] as const;
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
