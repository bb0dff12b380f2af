/** esbuild plugins for faster starts: they leave out unused code and load some modules differently. */
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { isBuiltin } from 'node:module';
import type { Plugin, ImportKind } from 'esbuild';

// esbuild plugins that put a source text in the place of a package, or of one file of a package.

const projectFolder = resolve(import.meta.dirname, '..', '..');

/** Replaces a package by the given source text. */
function replacePackage(name: string, contents: string): Plugin {
  return {
    name: `replace ${name}`,
    setup(plugin) {
      const filter = new RegExp(`^${name}$`);
      plugin.onResolve({ filter }, () => ({ path: name, namespace: 'replaced' }));
      plugin.onLoad({ filter, namespace: 'replaced' }, () => ({ contents, resolveDir: projectFolder }));
    },
  };
}

/** Replaces one file of a package by the given source text. Fails the build when the file is missing. */
function replaceFile(file: string, contents: string): Plugin {
  const path = join(projectFolder, 'node_modules', file);
  return {
    name: `replace ${file}`,
    setup(plugin) {
      if (!existsSync(path)) throw new Error(`${file} is gone: look where its package does that now.`);
      const filter = new RegExp(`${file.replaceAll('.', '\\.').replaceAll('/', '[\\\\/]')}$`);
      plugin.onLoad({ filter }, () => ({ contents, resolveDir: dirname(path) }));
    },
  };
}

/**
 * Lambda passes credentials in environment variables. The SDK's default chain adds files, processes, SSO and metadata
 * services, never used on Lambda.
 */
const credentialsOfEnvironment = replacePackage(
  '@aws-sdk/credential-provider-node',
  `export { fromEnv as defaultProvider } from '@aws-sdk/credential-provider-env';`,
);

/** Lambda has no ~/.aws, and a developer's ~/.aws must not change how a function works. */
const noFilesOfHome = replaceFile(
  '@smithy/core/dist-es/submodules/config/shared-ini-file-loader/loadSharedConfigFiles.js',
  `export { CONFIG_PREFIX_SEPARATOR } from './constants';
  export const loadSharedConfigFiles = async () => ({ configFile: {}, credentialsFile: {} });`,
);

/**
 * middy imports this class only for `instanceof` checks of bodies, and the import loads web streams. Bodies
 * here are Node.js streams.
 */
const webStreamsWhenCompared: Plugin = {
  name: 'web streams when compared',
  setup(plugin) {
    plugin.onResolve({ filter: /^node:stream\/web$/ }, ({ importer, path }) =>
      /@middy[\\/]core/.test(importer) ? { path, namespace: 'compared' } : undefined,
    );
    plugin.onLoad({ filter: /.*/, namespace: 'compared' }, () => ({
      contents: `export class ReadableStream {
        static [Symbol.hasInstance](value) { return value instanceof globalThis.ReadableStream; }
      }`,
    }));
  },
};

/**
 * An `import` of a Node module makes Node read all its exports, and one export of `node:http` loads all of
 * undici: 20 ms of each start. `process.getBuiltinModule` returns the same module object without that, and
 * the bundle then reads only the properties that it uses.
 */
export const builtinsWithoutFacade: Plugin = {
  name: 'builtins without facade',
  setup(plugin) {
    plugin.onResolve({ filter: /^(node:)?[a-z_0-9]+(\/[a-z_0-9/]+)?$/ }, ({ path, kind }) => {
      if (!isBuiltin(path)) return undefined;
      const namespace = builtinNamespaces[kind] ?? 'builtin';
      return { path: path.replace(/^(node:)?/, 'node:'), namespace, sideEffects: false };
    });
    plugin.onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => ({
      contents: builtinModule(path, () => true),
    }));
    // The exports that an `import()` uses are not known here. All are exported except getters, which load
    // more code when they are read.
    plugin.onLoad({ filter: /.*/, namespace: 'builtin-later' }, ({ path }) => ({
      contents: builtinModule(path, (property) => property.get === undefined),
    }));
    plugin.onLoad({ filter: /.*/, namespace: 'builtin-object' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule('${path}');`,
    }));
  },
};

const builtinNamespaces: Partial<Record<ImportKind, string>> = {
  'dynamic-import': 'builtin-later',
  'require-call': 'builtin-object',
};

/** Marks each export as free of side effects, so that esbuild drops unused exports. */
function builtinModule(path: string, isWanted: (property: PropertyDescriptor) => boolean): string {
  const properties = Object.entries(Object.getOwnPropertyDescriptors(process.getBuiltinModule(path) ?? {}));
  const names = properties.flatMap(([name, property]) =>
    /^[\w$]+$/.test(name) && isWanted(property) ? name : [],
  );
  return [
    `const builtin = /* @__PURE__ */ process.getBuiltinModule('${path}');`,
    'export default builtin;',
    ...names.map((name) => `const own_${name} = /* @__PURE__ */ (() => builtin.${name})();`),
    `export { ${names.map((name) => `own_${name} as ${name}`).join(', ')} };`,
  ].join('\n');
}

export const startPlugins: Plugin[] = [
  credentialsOfEnvironment,
  noFilesOfHome,
  webStreamsWhenCompared,
  builtinsWithoutFacade,
];
