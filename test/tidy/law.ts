/** What each layer may import. A layer is a folder of `shared`, or `functions`, or `infra`. */
export interface Layer {
  layers: string[];
  packages: string[];
}

export type Law = Map<string, Layer>;

/** Reads the law from the table of docs/architecture.md, so that what readers see is what holds. */
export function readLaw(page: string): Law {
  const lines = page.split('\n').map((line) => line.replaceAll(/ +/g, ' '));
  const start = lines.indexOf('| layer | may import | packages |');
  if (start < 0) throw new Error('no table of layers');
  const length = lines.slice(start).findIndex((line) => !line.startsWith('|'));
  const rows = lines.slice(start + 2, length < 0 ? undefined : start + length);
  return new Map(
    rows.map((row) => {
      const [layer, layers, packages] = row.replaceAll('`', '').split('|').slice(1);
      return [String(layer).trim(), { layers: listed(layers), packages: listed(packages) }];
    }),
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
