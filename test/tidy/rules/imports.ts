/** Imports run one way. Type imports and `import()` count like others. */
import path from 'node:path';
import { circlesOf, graphOf, type Graph } from '../graph.ts';
import { graphOfLaw, type Law } from '../law.ts';
import { isProduct, within, type Source } from '../sources.ts';

const folderOf = (file: string): string => path.posix.dirname(file);

const filesGraph = (sources: Source[]): Graph =>
  graphOf(
    sources.flatMap(({ file, uses }) => uses.map((target) => [file, target] as const)),
    sources.map(({ file }) => file),
  );

const foldersGraph = (sources: Source[]): Graph =>
  graphOf(
    sources.flatMap(({ folder, uses }) =>
      uses
        .map(folderOf)
        .filter((target) => target !== folder)
        .map((target) => [folder, target] as const),
    ),
  );

const isPackage = (name: string, listed: string): boolean =>
  listed.endsWith('*')
    ? name.startsWith(listed.slice(0, -1))
    : name === listed || name.startsWith(`${listed}/`);

/** Imports of a file that its folder's row does not have, as they are written. */
export function forbiddenImports({ file, folder, imports }: Source, law: Law): string[] {
  const folders = law.folders.get(folder) ?? [];
  const packages = [...law.packages].flatMap(([name, list]) => (within(folder, name) ? list : []));
  return imports.filter((name) => {
    if (!name.startsWith('.')) return !packages.some((each) => isPackage(name, each));
    const target = folderOf(path.posix.join(folderOf(file), name));
    return target !== folder && !folders.includes(target);
  });
}

export const importsOutsideLaw = (sources: Source[], law: Law): string[] =>
  sources
    .filter(isProduct)
    .flatMap((source) => forbiddenImports(source, law).map((name) => `${source.file} imports ${name}`));

export function foldersOutsideLaw(sources: Source[], law: Law): string[] {
  const folders = new Set(sources.filter(isProduct).map(({ folder }) => folder));
  return [
    ...[...folders].filter((folder) => !law.folders.has(folder)).map((folder) => `${folder} has no row`),
    ...[...law.folders.keys()]
      .filter((folder) => !folders.has(folder))
      .map((folder) => `${folder} has a row, but no files`),
  ];
}

export function circles(sources: Source[], law: Law): string[] {
  const product = sources.filter(isProduct);
  const ofFiles = circlesOf(filesGraph(product)).map((group) => `files: ${group.join(' <-> ')}`);
  const ofFolders = circlesOf(foldersGraph(product)).map((group) => `folders: ${group.join(' <-> ')}`);
  const ofLaw = circlesOf(graphOfLaw(law)).map((group) => `the table: ${group.join(' <-> ')}`);
  return [...ofFiles, ...ofFolders, ...ofLaw];
}
