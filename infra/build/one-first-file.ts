/**
 * Merges all files that a bundle reads at its start into one. esbuild splits code at each `import()`, so a start read fourteen files,
 * and Node takes longer to find and link a file than to read 5 KB. Late files import shared code from the merged file. A function with
 * work before its first call exports it as `prepare`. A wrapper file awaits it, so that late files loaded meanwhile don't wait
 * for each other.
 */
import { basename } from 'node:path';
import { build, type BuildOptions, type Metafile, type OutputFile, type Plugin } from 'esbuild';

/** The output of esbuild, in memory. */
export interface Bundle {
  outputFiles: OutputFile[];
  metafile: Metafile;
}

type Output = Metafile['outputs'][string];
type Outputs = Map<string, Output>;

const entry = 'index.mjs';
/** The name of the merged file if a wrapper awaits `prepare`. */
const behind = 'main.mjs';

/** Returns the bundle with the same file names, and a metafile with the inputs of each. */
export async function joinFirstFiles(bundle: Bundle, options: BuildOptions): Promise<Bundle> {
  const outputs = new Map(
    Object.entries(bundle.metafile.outputs).map(([path, output]) => [basename(path), output]),
  );
  const first = readAtStart(outputs);
  const later = [...outputs.keys()].filter((name) => !first.includes(name));
  const sources = new Map(bundle.outputFiles.map((file) => [basename(file.path), file.text]));
  // A merged file that late files import by name re-exports from the merged file.
  const passedOn = first.filter((name) => name !== entry && isImportedLater(outputs, name));
  const prepares = outputs.get(entry)?.exports.includes('prepare') ?? false;
  const oneFile = prepares ? behind : entry;
  const joined = await build({
    ...options,
    entryPoints: Object.fromEntries(
      [entry, ...later, ...passedOn].map((name) => [removeExtension(name === entry ? oneFile : name), name]),
    ),
    entryNames: '[name]',
    splitting: false,
    // Otherwise a late file and the merged file would wait for each other.
    supported: { 'top-level-await': false },
    plugins: [joinOutputs(outputs, { first, sources, oneFile, wanted: wantedOf(later, passedOn, sources) })],
  });
  if (joined.metafile === undefined || joined.outputFiles === undefined)
    throw new Error('The options of a bundle ask for a metafile and for no files on disk.');
  const described = describe(joined.metafile, { outputs, first, oneFile });
  const before = prepares ? await buildFileBefore(options) : undefined;
  return {
    outputFiles: [...joined.outputFiles, ...(before?.outputFiles ?? [])],
    metafile: {
      inputs: bundle.metafile.inputs,
      outputs: { ...described, ...(before && describeBefore(before.metafile)) },
    },
  };
}

const removeExtension = (name: string): string => name.replace(/\.mjs$/, '');

/** Awaits `prepare` at the top level, while Lambda still counts the start, and re-exports the handler. */
const buildFileBefore = (options: BuildOptions) =>
  build({
    ...options,
    splitting: false,
    metafile: true,
    write: false,
    stdin: {
      contents: `import { handler, prepare } from './${behind}';\nawait prepare();\nexport { handler };`,
      sourcefile: entry,
    },
    entryNames: removeExtension(entry),
    external: [`./${behind}`],
  });

const describeBefore = ({ outputs }: Metafile): Metafile['outputs'] =>
  Object.fromEntries(
    Object.entries(outputs).map(([path, output]) => [
      path,
      {
        ...output,
        inputs: {},
        imports: [{ path: path.replace(entry, behind), kind: 'import-statement' as const }],
      },
    ]),
  );

function readAtStart(outputs: Outputs): string[] {
  const seen = new Set<string>();
  const waiting = [entry];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const needed = outputs
      .get(name)
      ?.imports.filter((item) => !item.external && item.kind === 'import-statement');
    waiting.push(...(needed ?? []).map(({ path }) => basename(path)));
  }
  return [...seen].toSorted();
}

/** Returns whether another file uses this export. */
function wantedOf(later: string[], passedOn: string[], sources: Map<string, string>) {
  const imports = later.flatMap((file) => [
    ...(sources.get(file) ?? '').matchAll(/import\{([^}]*)\}from"\.\/([^"]+)"/g),
  ]);
  const names = imports.flatMap(([, list = '', from = '']) =>
    list.split(',').map((each) => `${from} ${each.split(' as ')[0]}`),
  );
  const wanted = new Set(names);
  return (name: string, each: string): boolean => passedOn.includes(name) || wanted.has(`${name} ${each}`);
}

const isImportedLater = (outputs: Outputs, name: string): boolean =>
  [...outputs.values()].some(({ imports }) =>
    imports.some(({ kind, path }) => kind === 'dynamic-import' && basename(path) === name),
  );

function joinOutputs(
  outputs: Outputs,
  {
    first,
    sources,
    oneFile,
    wanted,
  }: { first: string[]; sources: Map<string, string>; oneFile: string; wanted: ReturnType<typeof wantedOf> },
): Plugin {
  const listExports = (name: string): string[] => outputs.get(name)?.exports ?? [];
  /** Returns the local name, in the merged file, of the export `name`. */
  const nameShared = (name: string, each: string): string => `_${first.indexOf(name)}${each}`;
  const joinedText = first
    .map((name) => {
      const renamed = listExports(name).flatMap((each) =>
        wanted(name, each) ? `${each} as ${nameShared(name, each)}` : [],
      );
      return name === entry
        ? `export * from './${name}';`
        : `export { ${renamed.join(', ')} } from './${name}';`;
    })
    .join('\n');
  const passExportsOn = (name: string): string => {
    const own = listExports(name).flatMap((each) =>
      wanted(name, each) ? `${nameShared(name, each)} as ${each}` : [],
    );
    return `export { ${own.join(', ')} } from './${oneFile}';`;
  };
  return {
    name: 'one first file',
    setup(plugin) {
      plugin.onResolve({ filter: /.*/ }, ({ kind, namespace, path }) => {
        const name = basename(path);
        if (!outputs.has(name)) return { path, external: true };
        if (kind === 'entry-point') {
          if (name === entry) return { path: name, namespace: 'one-file' };
          return { path: name, namespace: first.includes(name) ? 'passed-on' : 'as-built' };
        }
        if (kind === 'dynamic-import' || namespace === 'passed-on')
          return { path: `./${name}`, external: true };
        if (!first.includes(name)) return { path: `./${name}`, external: true };
        const isInOneFile = namespace === 'one-file' || namespace === 'first';
        return { path: name, namespace: isInOneFile ? 'first' : 'passed-on' };
      });
      plugin.onLoad({ filter: /.*/, namespace: 'one-file' }, () => ({ contents: joinedText }));
      plugin.onLoad({ filter: /.*/, namespace: 'passed-on' }, ({ path }) => ({
        contents: passExportsOn(path),
      }));
      plugin.onLoad({ filter: /.*/, namespace: 'first' }, ({ path }) => ({
        contents: sources.get(path) ?? '',
      }));
      plugin.onLoad({ filter: /.*/, namespace: 'as-built' }, ({ path }) => ({
        contents: sources.get(path) ?? '',
      }));
    },
  };
}

/** Gives the merged file the inputs of all its sources. */
function describe(
  joined: Metafile,
  { outputs, first, oneFile }: { outputs: Outputs; first: string[]; oneFile: string },
): Metafile['outputs'] {
  const described = Object.entries(joined.outputs).map(([path, output]): [string, Output] => {
    const name = basename(path) === oneFile ? entry : basename(path);
    const parts = name === entry ? first : [name].filter((each) => !first.includes(each));
    const inputs = Object.assign({}, ...parts.map((part) => outputs.get(part)?.inputs)) as Output['inputs'];
    const imports = output.imports.map((item) => {
      const isOwn = basename(item.path) === oneFile || outputs.has(basename(item.path));
      return isOwn ? { path: path.replace(basename(path), basename(item.path)), kind: item.kind } : item;
    });
    return [path, { ...output, inputs, imports }];
  });
  return Object.fromEntries(described);
}
