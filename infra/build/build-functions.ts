/**
 * Bundles every file of `functions/`, the server and the console into `dist/<name>/index.mjs`. The local
 * stack, the tests and the deployment use the same bundle. Builds are reproducible: an unchanged function is not deployed again.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { build, type BuildOptions, type BuildResult, type Metafile } from 'esbuild';
import { joinFirstFiles, type Bundle } from './one-first-file.ts';
import { withBuiltPages } from '../pages/built-pages.ts';
import { builtinsWithoutFacade, startAliases } from './start-plugins.ts';

const projectFolder = resolve(import.meta.dirname, '..', '..');

export interface BuildFolders {
  /** Each `.ts` file in it is one function. */
  functionsFolder: string;
  /** Receives one folder per function, and `meta/<name>.json` with the inputs of each bundle. */
  outputFolder: string;
  serverEntry?: string;
  consoleEntry?: string;
}

export interface BuiltFunction {
  name: string;
  /** Size of all files of the bundle, including late ones. */
  bytes: number;
  /** False if the bundle on disk was identical and stayed. */
  changed: boolean;
}

const defaultFolders: BuildFolders = {
  functionsFolder: join(projectFolder, 'functions'),
  outputFolder: join(projectFolder, 'dist'),
  serverEntry: join(projectFolder, 'infra', 'server', 'main.ts'),
  consoleEntry: join(projectFolder, 'infra', 'ops', 'console', 'hosted', 'main.ts'),
};

/**
 * Builds all functions. Throws esbuild's BuildFailure, or an Error for a bundle that can't load on Lambda.
 */
export async function buildFunctions(folders: BuildFolders = defaultFolders): Promise<BuiltFunction[]> {
  const names = readdirSync(folders.functionsFolder)
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
    .map((file) => basename(file, '.ts'))
    .toSorted();
  const { outputFolder, serverEntry, consoleEntry } = folders;
  mkdirSync(join(outputFolder, 'meta'), { recursive: true });
  const built = await Promise.all([
    ...names.map((name) => buildFunction(name, folders)),
    // The Dockerfile is copied beside the bundle, so that the folder is the whole build context, also in the package.
    ...(serverEntry === undefined ? [] : [buildWhole('server', serverEntry, outputFolder, ['Dockerfile'])]),
    ...(consoleEntry === undefined
      ? []
      : [buildWhole('console', consoleEntry, outputFolder, ['../enhance.js', '../live.js'])]),
  ]);
  removeOthers(outputFolder, new Set([...built.map(({ name }) => name), 'meta']));
  return built;
}

const bundleOptions = {
  absWorkingDir: projectFolder,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  mainFields: ['module', 'main'],
  minify: true,
  // Characters outside ASCII take half the bytes of their escapes.
  charset: 'utf8',
  legalComments: 'none',
  metafile: true,
  write: false,
  logLevel: 'silent',
} satisfies BuildOptions;

const inParts = {
  // Code behind `import()` becomes a separate file, read on first use.
  splitting: true,
  chunkNames: 'chunk-[hash]',
  // Lets a function outside the project, for example in a test, resolve the project's packages.
  nodePaths: [join(projectFolder, 'node_modules')],
  plugins: [withBuiltPages, builtinsWithoutFacade],
} satisfies BuildOptions;

async function buildFunction(
  name: string,
  { functionsFolder, outputFolder }: BuildFolders,
): Promise<BuiltFunction> {
  const options = { ...bundleOptions, outdir: join(outputFolder, name) };
  const split = await build({
    ...options,
    ...inParts,
    entryPoints: { index: join(functionsFolder, `${name}.ts`) },
    alias: startAliases,
  });
  refuseWarnings(name, split);
  return writeBundle(name, outputFolder, await joinFirstFiles(split, options));
}

/**
 * Keeps the SDK unchanged: a process that starts seldom needs no short start, and may use any credential provider.
 * @param files extra files, by their paths from the entry
 */
async function buildWhole(
  name: string,
  entry: string,
  outputFolder: string,
  files: readonly string[],
): Promise<BuiltFunction> {
  const outdir = join(outputFolder, name);
  const built = await build({ ...bundleOptions, ...inParts, outdir, entryPoints: { index: entry } });
  refuseWarnings(name, built);
  const beside = files.map((file) => {
    const contents = readFileSync(join(dirname(entry), file));
    return { path: join(outdir, basename(file)), contents, text: contents.toString(), hash: '' };
  });
  return writeBundle(name, outputFolder, { ...built, outputFiles: [...built.outputFiles, ...beside] });
}

/** esbuild warns of an import without names, which it drops, because package.json declares that no module has side effects. */
function refuseWarnings(name: string, { warnings }: Pick<BuildResult, 'warnings'>): void {
  if (warnings.length > 0) throw new Error(`${name}: ${warnings.map(({ text }) => text).join('; ')}`);
}

function writeBundle(name: string, outputFolder: string, result: Bundle): BuiltFunction {
  const target = join(outputFolder, name);
  refuseDynamicRequire(name, result);
  const changed = replaceFolder(target, result);
  writeAtomically(locateMetaFile(outputFolder, name), JSON.stringify(normalizeMeta(result.metafile, target)));
  const bytes = result.outputFiles.reduce((sum, file) => sum + file.contents.byteLength, 0);
  return { name, bytes, changed };
}

/** Path of esbuild's metafile for a bundle. Its output paths are relative to the bundle. */
export function locateMetaFile(outputFolder: string, name: string): string {
  return join(outputFolder, 'meta', `${name}.json`);
}

/** Fails the build if esbuild replaced a `require()` by a stub that throws. */
function refuseDynamicRequire(name: string, result: Bundle): void {
  for (const file of result.outputFiles) {
    if (file.text.includes('Dynamic require of')) {
      throw new Error(
        `function ${name}: ${basename(file.path)} holds a CommonJS package that calls require()`,
      );
    }
  }
}

/**
 * Replaces the whole folder by a rename, so that no reader sees a mix of old and new files. Two builds may run at
 * once.
 */
function replaceFolder(target: string, result: Bundle): boolean {
  const wanted = new Map(result.outputFiles.map(({ path, contents }) => [relative(target, path), contents]));
  if (holds(target, wanted)) return false;
  const fresh = `${target}.${process.pid}.new`;
  const old = `${target}.${process.pid}.old`;
  for (const [name, contents] of wanted) {
    mkdirSync(dirname(join(fresh, name)), { recursive: true });
    writeFileSync(join(fresh, name), contents);
  }
  try {
    if (existsSync(target)) renameSync(target, old);
    renameSync(fresh, target);
  } catch (error) {
    // Another build replaced the folder first. That is fine if its files are identical.
    if (!holds(target, wanted)) throw error;
  } finally {
    for (const folder of [fresh, old]) rmSync(folder, { recursive: true, force: true });
  }
  return true;
}

function holds(folder: string, files: ReadonlyMap<string, Uint8Array>): boolean {
  try {
    const names = readdirSync(folder);
    return (
      names.length === files.size &&
      names.every((name) => files.has(name) && readFileSync(join(folder, name)).equals(files.get(name)!))
    );
  } catch {
    return false;
  }
}

function normalizeMeta(metafile: Metafile, target: string): Metafile {
  const makeRelative = (path: string): string => relative(target, resolve(projectFolder, path));
  const outputs = Object.entries(metafile.outputs).map(([path, output]) => [
    makeRelative(path),
    {
      ...output,
      imports: output.imports.map((item) =>
        item.external ? item : { ...item, path: makeRelative(item.path) },
      ),
    },
  ]);
  return { inputs: metafile.inputs, outputs: Object.fromEntries(outputs) as Metafile['outputs'] };
}

function writeAtomically(path: string, text: string): void {
  const fresh = `${path}.${process.pid}.new`;
  writeFileSync(fresh, text);
  renameSync(fresh, path);
}

/**
 * Removes bundles of deleted functions. Keeps the temporary folders of running builds: their names contain a
 * process id.
 */
function removeOthers(outputFolder: string, keep: Set<string>): void {
  for (const entry of readdirSync(outputFolder)) {
    if (!keep.has(entry) && !/\.\d+\.(new|old)$/.test(entry))
      rmSync(join(outputFolder, entry), { recursive: true, force: true });
  }
}

if (import.meta.main) {
  for (const { name, bytes, changed } of await buildFunctions()) {
    console.log(`${name}: ${Math.round(bytes / 1000)} KB${changed ? '' : ', unchanged'}`);
  }
}
