/** esbuild plugins that put a source text in the place of a package, or of one file of a package. */
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Plugin } from 'esbuild';

export const projectFolder = resolve(import.meta.dirname, '..', '..');

/** Replaces a package by the given source text. */
export function replacePackage(name: string, contents: string): Plugin {
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
export function replaceFile(file: string, contents: string): Plugin {
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
