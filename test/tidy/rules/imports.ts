/** Imports run one way, from layer to layer, and never in a circle. Type imports and `import()` count like others. */
import { circlesOf, graphOf, type Graph } from '../graph.ts';
import { layerOf, type Law } from '../law.ts';
import { isProduct, type Source } from '../sources.ts';

const isPackage = (name: string, listed: string): boolean =>
  listed.endsWith('*')
    ? name.startsWith(listed.slice(0, -1))
    : name === listed || name.startsWith(`${listed}/`);

/** Imports of product files that the row of their layer does not have. */
export const importsOutsideLaw = (sources: Source[], law: Law): string[] =>
  sources.filter(isProduct).flatMap(({ file, imports, uses }) => {
    const own = layerOf(file);
    const { layers, packages } = law.get(own) ?? { layers: [], packages: [] };
    const files = uses.filter((target) => ![own, ...layers].includes(layerOf(target)));
    const foreign = imports.filter(
      (name) => !name.startsWith('.') && !packages.some((each) => isPackage(name, each)),
    );
    return [...files, ...foreign].map((name) => `${file} imports ${name}`);
  });

export function layersOutsideLaw(sources: Source[], law: Law): string[] {
  const layers = new Set(sources.filter(isProduct).map(({ file }) => layerOf(file)));
  return [
    ...[...layers].filter((layer) => !law.has(layer)).map((layer) => `${layer} has no row`),
    ...[...law.keys()].filter((layer) => !layers.has(layer)).map((layer) => `${layer} holds no file`),
  ];
}

export function circles(sources: Source[], law: Law): string[] {
  const product = sources.filter(isProduct);
  const files: Graph = graphOf(
    product.flatMap(({ file, uses }) => uses.map((target) => [file, target] as const)),
  );
  const layers: Graph = new Map([...law].map(([layer, row]) => [layer, new Set(row.layers)]));
  return [
    ...circlesOf(files).map((group) => `files: ${group.join(' <-> ')}`),
    ...circlesOf(layers).map((group) => `the table: ${group.join(' <-> ')}`),
  ];
}
