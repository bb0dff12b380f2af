/** What the bundles leave out or load differently, so that a function starts sooner. */
import { isBuiltin } from 'node:module';
import { resolve } from 'node:path';
import type { Plugin } from 'esbuild';

const projectFolder = resolve(import.meta.dirname, '..');

/** Puts a few lines of ours in the place of a package. */
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

/**
 * Lambda hands credentials over by environment variables (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
 * AWS_SESSION_TOKEN). The SDK's default chain would add files, processes, SSO and metadata services: a third of the
 * bundle that can only make a start slower.
 */
const credentialsFromEnvironment = replacePackage(
  '@aws-sdk/credential-provider-node',
  `export { fromEnv as defaultProvider } from '@aws-sdk/credential-provider-env';`,
);

/** DynamoDB has endpoint discovery, off by default and off here: nothing ever looks into its cache. */
const noEndpointCache = replacePackage('@aws-sdk/endpoint-cache', 'export class EndpointCache {}');

/** Of its own package.json a client reads the version. */
const versionAlone: Plugin = {
  name: 'version alone',
  setup(plugin) {
    plugin.onLoad({ filter: /@aws-sdk[\\/]client-[a-z-]+[\\/]package\.json$/ }, async (args) => {
      const { default: manifest } = (await import(args.path, { with: { type: 'json' } })) as {
        default: { version: string };
      };
      return { contents: JSON.stringify({ version: manifest.version }), loader: 'json' };
    });
  },
};

/**
 * An `import` of a Node module makes Node read every one of its exports, and `node:http` has one that loads all of
 * undici: 20 ms of a start for nothing. The same module object asked for by call costs nothing extra.
 */
const builtinsWithoutFacade: Plugin = {
  name: 'builtins-without-facade',
  setup(plugin) {
    plugin.onResolve({ filter: /^(node:)?[a-z_0-9]+(\/[a-z_0-9/]+)?$/ }, (args) => {
      if (!isBuiltin(args.path)) return undefined;
      return { path: args.path.replace(/^(node:)?/, 'node:'), namespace: 'builtin' };
    });
    plugin.onLoad({ filter: /.*/, namespace: 'builtin' }, (args) => ({
      contents: `module.exports = process.getBuiltinModule('${args.path}');`,
    }));
  },
};

export const startPlugins: Plugin[] = [
  credentialsFromEnvironment,
  noEndpointCache,
  versionAlone,
  builtinsWithoutFacade,
];
