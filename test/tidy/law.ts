import type { Graph } from './graph.ts';

/** What each folder may import and which packages each layer may, from the root: `shared/wire`. */
export interface Law {
  folders: Map<string, string[]>;
  packages: Map<string, string[]>;
}

/** Reads the law from the two tables of docs/architecture.md, so that what readers see is what holds. */
export function readLaw(page: string): Law {
  return { folders: rowsBelow(page, '| folder | may import |', fromRoot), packages: packagesOf(page) };
}

const packagesOf = (page: string): Map<string, string[]> =>
  rowsBelow(page, '| layer | packages |', (name) => name);

/** The pages leave out `shared/`. */
const fromRoot = (name: string): string => (/^(functions|infra)\b/.test(name) ? name : `shared/${name}`);

function rowsBelow(page: string, head: string, named: (name: string) => string): Map<string, string[]> {
  const lines = page.split('\n').map((line) => line.replaceAll(/ +/g, ' '));
  const start = lines.indexOf(head);
  if (start < 0) throw new Error(`no table that begins with ${head}`);
  const length = lines.slice(start).findIndex((line) => !line.startsWith('|'));
  const rows = lines.slice(start + 2, length < 0 ? undefined : start + length);
  return new Map(
    rows.map((row) => {
      const [folder, names] = row
        .replaceAll('`', '')
        .split('|')
        .slice(1)
        .map((cell) => cell.trim());
      const listed = names === 'nothing' ? [] : String(names).split(', ');
      return [fromRoot(String(folder)), listed.map(named)];
    }),
  );
}

export const graphOfLaw = ({ folders }: Law): Graph =>
  new Map([...folders].map(([folder, names]) => [folder, new Set(names)]));
