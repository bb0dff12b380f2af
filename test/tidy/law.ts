/** What each layer may import. A layer is a folder of `shared`, or `functions`, or `infra`. */
export interface Layer {
  layers: string[];
  packages: string[];
}

export type Law = Map<string, Layer>;

/** Reads the law from the table of docs/architecture.md, so that what readers see is what holds. */
export const readLaw = (page: string): Law =>
  new Map(
    readTable(page, '| layer | may import | packages |').map(([layer = '', layers, packages]) => [
      layer,
      { layers: listed(layers), packages: listed(packages) },
    ]),
  );

/** Names of the folders and files of `relay`, floor by floor from below, from the same page. */
export const readFloors = (page: string): string[][] =>
  readTable(page, '| floor | folders and files of relay |').map(([_floor, names]) => listed(names));

/** The cells of the table with this header, without backquotes. */
function readTable(page: string, header: string): string[][] {
  const lines = page.split('\n').map((line) => line.replaceAll('`', '').replaceAll(/ +/g, ' '));
  const start = lines.indexOf(header);
  if (start < 0) throw new Error(`no table ${header}`);
  const length = lines.slice(start).findIndex((line) => !line.startsWith('|'));
  const rows = lines.slice(start + 2, length < 0 ? undefined : start + length);
  return rows.map((row) =>
    row
      .split('|')
      .slice(1)
      .map((cell) => cell.trim()),
  );
}

const listed = (cell = ''): string[] => {
  const text = cell.trim();
  return text === '' || text === 'nothing' ? [] : text.split(', ');
};

/** `shared/wire/call.ts` lies in `wire`. */
export const layerOf = (file: string): string => {
  const [top = '', below = ''] = file.split('/');
  return top === 'shared' ? below : top;
};

/** The folder or file of its layer that a file lies in or is: `money` of `shared/relay/money/bill.ts`, `retry` of `shared/relay/retry.ts`. */
export const memberOf = (file: string): string => {
  const steps = file.split('/');
  return String(steps[steps[0] === 'shared' ? 2 : 1]).replace(/\.\w+$/, '');
};
