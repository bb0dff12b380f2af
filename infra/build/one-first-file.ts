/**
 * Puts all files that a bundle reads at its start into one. esbuild splits code at each `import()`, so a start read
 * fourteen files, and Node spends longer on finding and linking a file than on reading 5 KB of it. Files that are read
 * later import what they share from the one file. A function that has work to do before its first call exports it as
 * `prepare`: a file before the one awaits it, so that files that are read meanwhile do not wait for each other.
 */
import { basename } from 'node:path';
import { build, type BuildOptions, type Metafile, type OutputFile, type Plugin } from 'esbuild';

/** esbuild's output, not yet on disk. */
export interface Bundle {
  outputFiles: OutputFile[];
  metafile: Metafile;
}

type Output = Metafile['outputs'][string];
type Outputs = Map<string, Output>;

const entry = 'index.mjs';
/** The one file, where another one awaits `prepare` before it. */
const behind = 'main.mjs';

/** Returns the bundle with the same names of files, and with the inputs of each in the metafile. */
export async function joinFirstFiles(bundle: Bundle, options: BuildOptions): Promise<Bundle> {
  const outputs = new Map(
    Object.entries(bundle.metafile.outputs).map(([path, output]) => [basename(path), output]),
  );
  const first = readAtStart(outputs);
  const later = [...outputs.keys()].filter((name) => !first.includes(name));
  const sources = new Map(bundle.outputFiles.map((file) => [basename(file.path), file.text]));
  // A file of the start that is imported by name later, too, passes on what is now in the one file.
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
    // A file that is read later would wait for the one file, and that one for it.
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

/** Awaits `prepare` at its top, where Lambda still counts a start, and passes the handler on. */
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

/** Tells if another file uses this export; other exports are only used inside the one file. */
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
  /** The name in the one file of what `name` exports. */
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

/** The one file has the inputs of all that went into it. */
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
