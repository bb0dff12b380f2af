/** esbuild plugins for faster starts: they remove unused code and load some modules differently. */
import { isBuiltin } from 'node:module';
import type { Plugin, ImportKind } from 'esbuild';

/**
 * An `import` of a Node module reads all its exports, and one export of `node:http` loads all of undici, which costs 20 ms of each
 * start. `process.getBuiltinModule` returns the same module object, and the bundle reads only the properties that it
 * uses.
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
      contents: writeBuiltinModule(path, () => true),
    }));
    // The plugin can't know which exports an `import()` uses. So it exports all but getters, which load more code when they are
    // read.
    plugin.onLoad({ filter: /.*/, namespace: 'builtin-later' }, ({ path }) => ({
      contents: writeBuiltinModule(path, (property) => property.get === undefined),
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
function writeBuiltinModule(path: string, isWanted: (property: PropertyDescriptor) => boolean): string {
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

/** Replacements of packages in functions. */
export const startAliases = {
  'node:stream/web': './infra/build/instead/stream-web.ts',
  '@aws-sdk/credential-provider-node': './infra/build/instead/no-providers.ts',
};
