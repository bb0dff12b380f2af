/** Writes the built parts of the customers' pages: `node infra/pages/write-pages.ts`. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { builtPages } from './built-pages.ts';

for (const [file, text] of Object.entries(await builtPages()))
  writeFileSync(path.resolve(import.meta.dirname, '../..', file), text);
