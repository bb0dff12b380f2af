/**
 * Prints what follows from the table of layers: for each folder its files, its lines and the folders that it imports; the
 * largest files. With `--call`, the files that one warm streamed call enters, in order.
 */
import path from 'node:path';
import { parseArgs } from 'node:util';
import { runRequest } from '../request-path/run-request.ts';
import { isProduct, readSources, type Source } from '../tidy/sources.ts';

const root = path.join(import.meta.dirname, '../..');
const { values } = parseArgs({
  options: { call: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
});
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const linesOf = ({ text }: Source): number => text.split('\n').length - 1;

function printFolders(sources: Source[]): void {
  const folders = Map.groupBy(sources, ({ folder }) => folder);
  for (const [folder, files] of [...folders].toSorted(([a], [b]) => a.localeCompare(b))) {
    const targets = files.flatMap(({ uses }) => uses.map((file) => path.posix.dirname(file)));
    const arrows = [...new Set(targets)].filter((target) => target !== folder).toSorted();
    const lines = files.reduce((sum, file) => sum + linesOf(file), 0);
    print(`${folder}  ${files.length} files, ${lines} lines -> ${arrows.join(' ') || 'nothing'}`);
  }
  print('');
  for (const file of sources.toSorted((a, b) => linesOf(b) - linesOf(a)).slice(0, 10))
    print(`${linesOf(file)}  ${file.file}`);
}

if (values.help)
  print('npm run graph [-- --call]: folders and their arrows, or the files that one call enters');
else if (values.call) for (const file of (await runRequest(root)).ordered) print(file);
else printFolders(readSources(root, ['shared', 'functions', 'infra']).filter(isProduct));
