/** Writes relay.schema.json from the table of options. */
import { writeFileSync } from 'node:fs';
import { optionsSchema } from '../../infra/stack/options/option-table.ts';

writeFileSync('relay.schema.json', `${JSON.stringify(optionsSchema(), null, 2)}\n`);
