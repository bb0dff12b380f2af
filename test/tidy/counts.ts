/** The numbers of the house: how many files and folders, how deep, how many imports, which of them run back. */
import { circlesOf, longestChain } from './graph.ts';
import type { Law } from './law.ts';
import { chainInside, forbiddenImports, graphAmong } from './rules/imports.ts';
import { isProduct, within, type Source } from './sources.ts';

const heads = ['files', 'folders', 'chain', 'floors', 'arrows', 'back', 'circles'];

function rowOf(name: string, sources: Source[], law: Law): string {
  const graph = graphAmong(sources);
  const folders = [...new Set(sources.map(({ folder }) => folder))];
  const values = [
    sources.length,
    folders.length,
    Math.max(...folders.map((folder) => chainInside(sources, folder).length)),
    longestChain(graph).length,
    [...graph.values()].reduce((sum, targets) => sum + targets.size, 0),
    sources.flatMap((source) => forbiddenImports(source, law)).length,
    circlesOf(graph).length,
  ];
  return [name.padEnd(34), ...values.map((value) => String(value).padStart(8))].join('');
}

/** Both steps of a layer's name: `shared/relay`, `infra/local`; `functions` has one. */
const layerOf = (folder: string): string =>
  folder
    .split('/')
    .slice(0, 2)
    .join('/')
    .replace(/^functions\/.*/, 'functions');

/**
 * One row for each layer, or for each folder. Chain: the longest way through the imports inside one folder. Floors: the same
 * inside the whole row. Arrows: imports inside the row. Back: imports that the law forbids.
 */
export function countsOf(sources: Source[], law: Law, by: 'layer' | 'folder'): string {
  const product = sources.filter(isProduct);
  const names = new Set(product.map(({ folder }) => (by === 'layer' ? layerOf(folder) : folder)));
  const rows = [...names].map((name) => {
    const inRow = (folder: string): boolean => (by === 'layer' ? within(folder, name) : folder === name);
    return rowOf(
      name,
      product.filter(({ folder }) => inRow(folder)),
      law,
    );
  });
  const head = [''.padEnd(34), ...heads.map((each) => each.padStart(8))].join('');
  return [head, ...rows, rowOf('all', product, law)].join('\n');
}
