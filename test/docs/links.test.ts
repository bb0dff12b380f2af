import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { pages, proseOf, readPage, root } from './pages.ts';

/** Targets of `[text](target)` and of `[name]: target` in this repository. */
function linksOf(page: string): string[] {
  const prose = proseOf(page);
  const inline = [...prose.matchAll(/\]\(([^)\s]+)\)/g)];
  const named = [...prose.matchAll(/^\[[^\]]+\]: (\S+)$/gm)];
  return [...inline, ...named].map((match) => String(match[1])).filter((target) => !/^[a-z]+:/.test(target));
}

/** The anchors of a page's headings. */
const anchorsOf = (page: string): string[] =>
  [
    ...readPage(page)
      .replaceAll(/^```.*?^```$/gms, '')
      .matchAll(/^#+ (.*)$/gm),
  ].map(([, heading]) =>
    String(heading)
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

/** Files and folders of this repository that a page names: `shared/wire/public-api.ts`. */
const pathsOf = (page: string): string[] =>
  [...readPage(page).matchAll(/`((?:shared|functions|infra|test|docs)\/[\w./-]+)`/g)].map((match) =>
    String(match[1]),
  );

describe.each(pages)('%s', (page) => {
  // The changelog names files as they were then.
  it.skipIf(page === 'docs/CHANGELOG.md')('names files that exist', () => {
    expect(pathsOf(page).filter((name) => !existsSync(path.join(root, name)))).toEqual([]);
  });

  it('has links whose targets exist', () => {
    for (const link of linksOf(page)) {
      const [file, anchor] = link.split('#');
      const target = file === '' ? page : path.join(path.dirname(page), String(file));
      expect(existsSync(path.join(root, target)), `${link} exists`).toBe(true);
      if (anchor === undefined || statSync(path.join(root, target)).isDirectory()) continue;
      expect(anchorsOf(target), `${link} has its heading`).toContain(anchor);
    }
  });
});
