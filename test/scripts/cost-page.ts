/**
 * Writes the reports of docs/cost.md again, after prices or amounts changed: `node test/scripts/cost-page.ts`. The figures in
 * its sentences and tables are written by hand; test/docs/cost.test.ts names those that are wrong then.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { readPage, root } from '../docs/pages.ts';
import { runOps } from '../ops/run-ops.ts';

const report = /(?<=^```console\n\$ npx --no relay-ops )(.*)\n[^]*?(?=^```$)/gm;

const page = readPage('docs/cost.md');
const outputs = await Promise.all(
  [...page.matchAll(report)].map(async ([, words = '']) => {
    const { output, errors } = await runOps(words.split(' '));
    return `${words}\n${errors}${output}`;
  }),
);
writeFileSync(
  path.join(root, 'docs/cost.md'),
  page.replaceAll(report, () => outputs.shift() ?? ''),
);
