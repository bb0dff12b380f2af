/** Which folders there are, and which AGENTS.md shows. */
import type { Source } from '../sources.ts';

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

/** Every folder that holds a source, with those above it. */
export function foldersOf(sources: Source[]): string[] {
  const folders = sources.flatMap(({ folder }) => {
    const steps = folder.split('/');
    return steps.map((_, position) => steps.slice(0, position + 1).join('/'));
  });
  return [...new Set(folders)].toSorted();
}

/** Folders to the second step must be drawn, deeper ones may be; what is drawn must exist. */
export function undrawnFolders(sources: Source[], page: string): string[] {
  const drawn = drawnFolders(page);
  const folders = foldersOf(sources);
  return [
    ...folders
      .filter((folder) => folder.split('/').length <= 2 && !drawn.includes(folder))
      .map((folder) => `${folder} is not drawn`),
    ...drawn
      .filter((folder) => /^(shared|functions|infra|test)\b/.test(folder) && !folders.includes(folder))
      .map((folder) => `${folder} is drawn, but holds no source`),
  ];
}
