/**
 * Builds the package that other CDK apps install: the construct as JavaScript with types, and the bundles of its functions. It gets
 * its own package.json, because the repository's lists dependencies of the build and the tests.
 *
 *     npm run package [-- --name @acme/relay] [--repository https://github.com/acme/relay]
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildSync } from 'esbuild';

const projectFolder = resolve(import.meta.dirname, '..', '..');

/** Files that apps can import by name. The rest of the package is private. */
const entries = { '.': 'infra/stack/relay', './edge': 'infra/stack/edge/relay-edge' };

/** `test/long/teams.test.ts` tries the lowest version and the one that is installed here. */
const peers = { 'aws-cdk-lib': '^2.230.0', constructs: '^10.0.0' };

export interface PackageSettings {
  /** Receives the tarball. */
  outputFolder: string;
  /** The build's output: one folder per function. Default: `dist`. */
  bundlesFolder?: string;
  /** Your own name, to publish the package in your registry. By default the repository's, which can't be published. */
  name?: string | undefined;
  /** The address of the sources. Omitted from package.json by default. */
  repository?: string | undefined;
}

export interface PackedPackage {
  tarball: string;
  bytes: number;
  unpackedBytes: number;
  files: string[];
}

export function makePackage(settings: PackageSettings): PackedPackage {
  const bundlesFolder = settings.bundlesFolder ?? join(projectFolder, 'dist');
  const folder = mkdtempSync(join(tmpdir(), 'relay-package-'));
  try {
    compile(folder);
    copyBundles(bundlesFolder, join(folder, 'dist'));
    writeFileSync(join(folder, 'package.json'), `${JSON.stringify(buildManifest(settings), null, 2)}\n`);
    cpSync(join(projectFolder, 'LICENSE'), join(folder, 'LICENSE'));
    cpSync(join(projectFolder, 'docs', 'openapi.json'), join(folder, 'openapi.json'));
    writeFileSync(join(folder, 'README.md'), writeReadme());
    return pack(folder, settings.outputFolder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Compiles only the entries and their imports. The package has the folders of the repository. */
function compile(folder: string): void {
  const config = join(folder, 'tsconfig.json');
  const options = {
    noEmit: false,
    declaration: true,
    rewriteRelativeImportExtensions: true,
    rootDir: projectFolder,
    outDir: folder,
    typeRoots: [join(projectFolder, 'node_modules', '@types')],
  };
  const files = Object.values(entries).map((file) => join(projectFolder, `${file}.ts`));
  const extended = join(projectFolder, 'tsconfig.json');
  writeFileSync(config, JSON.stringify({ extends: extended, compilerOptions: options, files, include: [] }));
  run(join(projectFolder, 'node_modules', '.bin', 'tsc'), ['-p', config]);
  rmSync(config);
  inlineChecks(folder);
  convertToCommonJs(folder);
  for (const file of listFilesBelow(folder).filter((name) => name.endsWith('.d.ts'))) {
    const types = readFileSync(join(folder, file), 'utf8');
    // The compiler rewrites imports only in JavaScript files.
    writeFileSync(
      join(folder, file),
      types.replaceAll(/((?:from |import\()["']\.[^"']*)\.ts(["'])/g, '$1.js$2'),
    );
  }
}

/** Bundles the checks of props with the package that they need, and removes files that only they import. */
function inlineChecks(folder: string): void {
  const file = 'infra/stack/options/prop-problems';
  buildSync({
    entryPoints: [join(projectFolder, `${file}.ts`)],
    outfile: join(folder, `${file}.js`),
    allowOverwrite: true,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
  });
  const used = new Set<string>();
  for (const entry of Object.values(entries))
    for (const kind of ['.js', '.d.ts']) reach(`${entry}${kind}`, { folder, used });
  const unused = listFilesBelow(folder).filter((each) => /\.(js|d\.ts)$/.test(each) && !used.has(each));
  for (const each of unused) rmSync(join(folder, each));
}

/** Adds a file and everything that it imports by relative paths. */
function reach(file: string, { folder, used }: { folder: string; used: Set<string> }): void {
  if (used.has(file)) return;
  used.add(file);
  const kind = file.endsWith('.d.ts') ? '.d.ts' : '.js';
  const code = readFileSync(join(folder, file), 'utf8');
  for (const [, path = ''] of code.matchAll(/(?:from |import\()["'](\.[^"']+)["']/g))
    reach(`${join(dirname(file), path).replace(/\.[jt]s$/, '')}${kind}`, { folder, used });
}

/** Test runners such as Jest load only CommonJS. ES modules import it by name, like CDK itself. */
function convertToCommonJs(folder: string): void {
  const code = listFilesBelow(folder).filter((file) => file.endsWith('.js'));
  buildSync({
    entryPoints: code.map((file) => join(folder, file)),
    outdir: folder,
    allowOverwrite: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    define: { 'import.meta.dirname': '__dirname' },
  });
}

function copyBundles(from: string, to: string): void {
  const bundles = existsSync(from)
    ? readdirSync(from).filter((name) => existsSync(join(from, name, 'index.mjs')))
    : [];
  if (bundles.length === 0) throw new Error(`no bundles in ${from}: npm run build makes them`);
  for (const name of bundles) cpSync(join(from, name), join(to, name), { recursive: true });
}

function buildManifest({ name, repository }: PackageSettings): object {
  const own = JSON.parse(read('package.json')) as Record<string, string>;
  const exported = Object.entries(entries).map(([entry, file]) => [
    entry,
    { types: `./${file}.d.ts`, default: `./${file}.js` },
  ]);
  return {
    name: name ?? own['name'],
    version: own['version'],
    description: own['description'],
    license: own['license'],
    keywords: own['keywords'],
    ...(repository !== undefined && { repository: { type: 'git', url: `git+${repository}.git` } }),
    // The public registry has another package of this name.
    ...(name === undefined && { private: true }),
    type: 'commonjs',
    // `moduleResolution: node10` does not read `exports`.
    main: `./${entries['.']}.js`,
    types: `./${entries['.']}.d.ts`,
    typesVersions: {
      '*': Object.fromEntries(
        Object.entries(entries).flatMap(([entry, file]) =>
          entry === '.' ? [] : [[entry.slice('./'.length), [`./${file}.d.ts`]]],
        ),
      ),
    },
    exports: Object.fromEntries(exported) as object,
    engines: { node: '>=20' },
    peerDependencies: peers,
  };
}

/** Copies the page about the construct. Its links point to pages that are not in the package. */
const writeReadme = (): string =>
  read('docs/construct.md').replaceAll(/\[([^\]]+)\]\((?!https:)[^)]+\)/g, '$1');

function pack(folder: string, outputFolder: string): PackedPackage {
  const parameters = ['pack', '--json', '--ignore-scripts', '--pack-destination', resolve(outputFolder)];
  const [packed] = JSON.parse(run('npm', parameters, folder)) as [
    { filename: string; size: number; unpackedSize: number; files: { path: string }[] },
  ];
  return {
    tarball: join(resolve(outputFolder), packed.filename),
    bytes: packed.size,
    unpackedBytes: packed.unpackedSize,
    files: packed.files.map(({ path }) => path),
  };
}

const run = (command: string, parameters: string[], cwd = projectFolder): string =>
  execFileSync(command, parameters, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

const read = (file: string): string => readFileSync(join(projectFolder, file), 'utf8');

const listFilesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' });

if (import.meta.main) {
  const { values } = parseArgs({ options: { name: { type: 'string' }, repository: { type: 'string' } } });
  const { tarball, bytes, files } = makePackage({ outputFolder: projectFolder, ...values });
  console.log(`${tarball}: ${Math.round(bytes / 1000)} KB, ${files.length} files`);
}
