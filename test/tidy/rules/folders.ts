/** How many files a folder holds, and which folders AGENTS.md shows. */
import path from 'node:path';
import { isProduct, type Source } from '../sources.ts';
import type { ParallelSet } from '../house.ts';

const filesMax = 15;
const filesMin = 3;

export function folderSizes(
  sources: Source[],
  { parallelSets, smallFolders }: { parallelSets: ParallelSet[]; smallFolders: Record<string, string> },
): string[] {
  const counts = new Map<string, number>();
  for (const { folder } of sources.filter(isProduct)) counts.set(folder, (counts.get(folder) ?? 0) + 1);
  const isMember = (folder: string): boolean =>
    parallelSets.some(({ parent }) => path.posix.dirname(folder) === parent);
  return [
    ...[...counts]
      .filter(([, count]) => count > filesMax)
      .map(([folder, count]) => `${folder} has ${count} files: split it`),
    ...[...counts]
      .filter(([folder, count]) => count < filesMin && !isMember(folder) && !smallFolders[folder])
      .map(([folder, count]) => `${folder} has ${count} of 3 files: join it with another`),
    ...Object.keys(smallFolders)
      .filter((folder) => (counts.get(folder) ?? 0) >= filesMin || !counts.has(folder))
      .map((folder) => `${folder} needs no leave to be small`),
  ];
}

/** The folders of a drawn tree: the first code block of a page, two spaces for each step down, a comment after the name. */
export function drawnFolders(page: string): string[] {
  const tree = /^```text\n([^]*?)^```$/m.exec(page)?.[1] ?? '';
  const above: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, indent, name] = /^( *)([\w.-]+)\/(?: |$)/.exec(line) ?? [];
    if (indent === undefined) return [];
    above.splice(indent.length / 2, Infinity, String(name));
    return [above.join('/')];
  });
}

/** Every folder that holds a source, with those above it; of tests the first two steps. */
export function foldersOf(sources: Source[]): string[] {
  const folders = sources.flatMap((source) => {
    const steps = source.folder.split('/').slice(0, isProduct(source) ? undefined : 2);
    return steps.map((_, position) => steps.slice(0, position + 1).join('/'));
  });
  return [...new Set(folders)].toSorted();
}

export function undrawnFolders(sources: Source[], page: string): string[] {
  const drawn = drawnFolders(page);
  const folders = foldersOf(sources);
  return [
    ...folders.filter((folder) => !drawn.includes(folder)).map((folder) => `${folder} is not drawn`),
    ...drawn
      .filter((folder) => /^(shared|functions|infra|test)\b/.test(folder) && !folders.includes(folder))
      .map((folder) => `${folder} is drawn, but holds no source`),
  ];
}
