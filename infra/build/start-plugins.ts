/** What the bundles leave out or load differently, so that a function starts sooner. */
import { existsSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import type { ImportKind, Plugin } from 'esbuild';

const projectFolder = resolve(import.meta.dirname, '..', '..');

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

/** Puts a few lines of ours in the place of one file of a package. A file that has moved fails the build. */
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

const replacedPackages: Record<string, string> = {
  // Lambda hands credentials over by environment variables (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
  // AWS_SESSION_TOKEN). The SDK's default chain would add files, processes, SSO and metadata services: a third of the
  // bundle that can only make a start slower.
  '@aws-sdk/credential-provider-node': `export { fromEnv as defaultProvider } from '@aws-sdk/credential-provider-env';`,
  // DynamoDB has endpoint discovery, off by default and off here: nothing ever looks into its cache.
  '@aws-sdk/endpoint-cache': 'export class EndpointCache {}',
  // No call of a function streams events: not of DynamoDB, not of the secret stores.
  '@smithy/core/event-streams': `throw new Error('Event streams are left out of the bundles: infra/build/start-plugins.ts');
  export const EventStreamSerde = undefined, eventStreamSerdeProvider = undefined;`,
  // Names browsers, of which there is none.
  bowser: 'export const parse = undefined;',
};

const serde = '@smithy/core/dist-es/submodules/serde';

const replacedFiles: Record<string, string> = {
  // There is no ~/.aws on Lambda, and on a developer's machine it must not change how a function works.
  '@smithy/core/dist-es/submodules/config/shared-ini-file-loader/loadSharedConfigFiles.js': `export { CONFIG_PREFIX_SEPARATOR } from './constants';
  export const loadSharedConfigFiles = async () => ({ configFile: {}, credentialsFile: {} });`,
  // No function sends a file as a body; the SDK's question whether it does loads half of `node:fs`.
  [`${serde}/util-body-length/calculateBodyLength.js`]: `export const calculateBodyLength = (body) =>
    !body ? 0 : typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;`,
  // The SDK asks the global `crypto` for ids, which loads all of WebCrypto.
  [`${serde}/uuid/v4.js`]: `import { randomUUID } from 'node:crypto';
  export const bindV4 = () => randomUUID;`,
  // The SDK's own log is silent, and yet each call's input and output are copied for it, by schema.
  '@aws-sdk/core/dist-es/submodules/client/middleware-logger/loggerMiddleware.js': `export const loggerMiddleware = () => (next) => next;
  export const loggerMiddlewareOptions = { name: 'loggerMiddleware', step: 'initialize', override: true };
  export const getLoggerPlugin = () => ({ applyToStack() {} });`,
  // Node's own SHA-256 is always there.
  '@smithy/core/dist-es/submodules/checksum/sha256/Sha256Js.js': 'export const Sha256Js = undefined;',
};

/**
 * The SDK's rules for endpoints are an interpreter and tables of 22 KB. Ours know the plain endpoint of each region, and
 * the configured one. A wish for another kind of endpoint is refused: who asks for FIPS must not get less.
 */
function plainEndpoint(client: string, service: string): Plugin {
  return replaceFile(
    `@aws-sdk/${client}/dist-es/endpoint/endpointResolver.js`,
    `import { awsEndpointFunctions } from '@aws-sdk/core/client';
    export function defaultEndpointResolver({ Region, Endpoint, UseFIPS, UseDualStack }) {
      if (UseFIPS || UseDualStack) throw new Error('FIPS and dual-stack endpoints are not in the bundles.');
      const { dnsSuffix } = awsEndpointFunctions.partition(Region);
      return { url: new URL(Endpoint ?? \`https://${service}.\${Region}.\${dnsSuffix}\`), headers: {}, properties: {} };
    }`,
  );
}

/** What all regions of a partition share is known by the pattern of their names; only odd names are listed. */
const partitionsByPattern: Plugin = {
  name: 'partitions by pattern',
  setup(plugin) {
    plugin.onLoad(
      { filter: /@aws-sdk[\\/]core[\\/]dist-es[\\/].*[\\/]partitions\.js$/ },
      async ({ path }) => {
        const { partitionsInfo } = (await import(path)) as { partitionsInfo: { partitions: AwsPartition[] } };
        const partitions = partitionsInfo.partitions.map(({ id, outputs, regionRegex, regions }) => {
          const odd = Object.keys(regions).filter((region) => !new RegExp(regionRegex).test(region));
          return { id, outputs, regionRegex, regions: Object.fromEntries(odd.map((region) => [region, {}])) };
        });
        return { contents: `export const partitionsInfo = ${JSON.stringify({ partitions })};` };
      },
    );
  },
};

interface AwsPartition {
  id: string;
  outputs: object;
  regionRegex: string;
  regions: Record<string, object>;
}

/** middy compares bodies with this class and loads web streams for it; ours are streams of Node's own kind. */
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
 * esbuild takes the whole of a package that is loaded by `const { A, B } = await import('...')`: of an SDK client all
 * its commands, ten times the code. This takes the names that stand there.
 */
const namesOfLaterImports: Plugin = {
  name: 'names of later imports',
  setup(plugin) {
    plugin.onResolve({ filter: /^@aws-sdk\/client-/ }, ({ kind, importer, path }) => {
      if (kind !== 'dynamic-import') return undefined;
      const pattern = new RegExp(`const \\{([\\w\\s,]+)\\} = await import\\('${path}'\\)`, 'g');
      const names = [...readFileSync(importer, 'utf8').matchAll(pattern)].map(([, list]) => list);
      if (names.length === 0)
        throw new Error(`${importer}: write const { ... } = await import(...) for ${path}`);
      return { path, namespace: 'names', pluginData: names.join(',') };
    });
    plugin.onLoad({ filter: /.*/, namespace: 'names' }, (args) => ({
      contents: `export { ${args.pluginData} } from '${args.path}';`,
      resolveDir: projectFolder,
    }));
  },
};

/**
 * An `import` of a Node module makes Node read every one of its exports, and `node:http` has one that loads all of
 * undici: 20 ms of a start for nothing. The same module object asked for by call costs nothing extra, and of its
 * properties only those are read that the bundle uses.
 */
const builtinsWithoutFacade: Plugin = {
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
    // Nobody knows which exports an `import()` is after: all but those that load more when they are read.
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

/** Each export is marked as free of side effects, so that esbuild drops those that nobody imports. */
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
  ...Object.entries(replacedPackages).map(([name, contents]) => replacePackage(name, contents)),
  ...Object.entries(replacedFiles).map(([file, contents]) => replaceFile(file, contents)),
  plainEndpoint('client-dynamodb', 'dynamodb'),
  plainEndpoint('client-ssm', 'ssm'),
  plainEndpoint('client-secrets-manager', 'secretsmanager'),
  partitionsByPattern,
  webStreamsWhenCompared,
  versionAlone,
  namesOfLaterImports,
  builtinsWithoutFacade,
];
