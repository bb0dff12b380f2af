/**
 * Imports run one way, from layer to layer and from floor to floor of `relay`, and never in a circle. Type imports and
 * `import()` count like others.
 */
import { circlesOf, graphOf, type Graph } from '../graph.ts';
import { layerOf, memberOf, type Law } from '../law.ts';
import { isProduct, type Source } from '../sources.ts';

const isPackage = (name: string, listed: string): boolean =>
  listed.endsWith('*')
    ? name.startsWith(listed.slice(0, -1))
    : name === listed || name.startsWith(`${listed}/`);

const nameOf = (file: string): string => `${layerOf(file)}/${memberOf(file)}`;

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

/** Imports of the relay that do not lead to a lower floor, files without a floor, and names without a file. */
export function importsOutsideFloors(sources: Source[], floors: string[][]): string[] {
  const floorOf = new Map(floors.flatMap((names, floor) => names.map((name) => [name, floor])));
  const relay = sources.filter(({ file }) => isProduct({ file }) && layerOf(file) === 'relay');
  const members = new Set(relay.map(({ file }) => memberOf(file)));
  const wrong = relay.flatMap(({ file, uses }) => {
    const own = memberOf(file);
    const targets = uses.filter((target) => layerOf(target) === 'relay' && memberOf(target) !== own);
    return targets
      .filter((target) => Number(floorOf.get(memberOf(target))) >= Number(floorOf.get(own)))
      .map((target) => `${file} imports ${target}`);
  });
  return [
    ...wrong,
    ...[...members].filter((name) => !floorOf.has(name)).map((name) => `${name} has no floor`),
    ...[...floorOf.keys()].filter((name) => !members.has(name)).map((name) => `${name} holds no file`),
  ];
}

export function circles(sources: Source[], law: Law): string[] {
  const product = sources.filter(isProduct);
  const files: Graph = graphOf(
    product.flatMap(({ file, uses }) => uses.map((target) => [file, target] as const)),
  );
  const members: Graph = graphOf(
    product.flatMap(({ file, uses }) =>
      uses
        .filter((target) => layerOf(target) === layerOf(file) && memberOf(target) !== memberOf(file))
        .map((target) => [nameOf(file), nameOf(target)] as const),
    ),
  );
  const layers: Graph = new Map([...law].map(([layer, row]) => [layer, new Set(row.layers)]));
  return [
    ...circlesOf(files).map((group) => `files: ${group.join(' <-> ')}`),
    ...circlesOf(members).map((group) => `folders: ${group.join(' <-> ')}`),
    ...circlesOf(layers).map((group) => `the table: ${group.join(' <-> ')}`),
  ];
}
