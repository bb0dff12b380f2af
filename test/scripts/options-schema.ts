/** Writes relay.schema.json from the table of options. */
import { writeFileSync } from 'node:fs';
import { optionsSchema } from '../../infra/stack/options/options-schema.ts';

writeFileSync('relay.schema.json', `${JSON.stringify(optionsSchema(), null, 2)}\n`);
