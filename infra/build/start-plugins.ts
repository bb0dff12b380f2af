/** esbuild plugins for faster starts: they leave out unused code and load some modules differently. */
import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import type { ImportKind, Plugin } from 'esbuild';
import { plainJson } from './plain-json-plugin.ts';
import { projectFolder, replaceFile, replaceOnce, replacePackage, rewriteFile } from './replace.ts';

const replacedPackages: Record<string, string> = {
  // Lambda passes credentials in environment variables (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
  // AWS_SESSION_TOKEN). The SDK's default chain adds files, processes, SSO and metadata services: a third of
  // the bundle, never used on Lambda, which slows every start.
  '@aws-sdk/credential-provider-node': `export { fromEnv as defaultProvider } from '@aws-sdk/credential-provider-env';`,
  // Endpoint discovery of DynamoDB is off by default and off here.
  '@aws-sdk/middleware-endpoint-discovery': `export const resolveEndpointDiscoveryConfig = (config) => config;
  export const NODE_ENDPOINT_DISCOVERY_CONFIG_OPTIONS = { environmentVariableSelector() {}, configFileSelector() {}, default: false };`,
  // No SDK call of a function uses event streams, neither for DynamoDB nor for the secret stores.
  '@smithy/core/event-streams': `throw new Error('Event streams are left out of the bundles: infra/build/start-plugins.ts');
  export const EventStreamSerde = undefined, eventStreamSerdeProvider = undefined;`,
  // Detects browsers; functions do not run in one.
  bowser: 'export const parse = undefined;',
};

const noExtensions = `export const resolveRuntimeExtensions = (config, extensions) => {
  if (extensions.length > 0) throw new Error('Extensions are left out of the bundles: infra/build/start-plugins.ts');
  return config;
};`;

const serde = '@smithy/core/dist-es/submodules/serde';

const replacedFiles: Record<string, string> = {
  // Lambda has no ~/.aws, and a developer's ~/.aws must not change how a function works.
  '@smithy/core/dist-es/submodules/config/shared-ini-file-loader/loadSharedConfigFiles.js': `export { CONFIG_PREFIX_SEPARATOR } from './constants';
  export const loadSharedConfigFiles = async () => ({ configFile: {}, credentialsFile: {} });`,
  // No function sends a file as a body. The SDK's check for file bodies loads half of `node:fs`.
  [`${serde}/util-body-length/calculateBodyLength.js`]: `export const calculateBodyLength = (body) =>
    !body ? 0 : typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;`,
  // The SDK generates ids with the global `crypto`, which loads all of WebCrypto.
  [`${serde}/uuid/v4.js`]: `import { randomUUID } from 'node:crypto';
  export const bindV4 = () => randomUUID;`,
  // The SDK copies the input and output of each call, by schema, for its own log, which is off.
  '@aws-sdk/core/dist-es/submodules/client/middleware-logger/loggerMiddleware.js': `export const loggerMiddleware = () => (next) => next;
  export const loggerMiddlewareOptions = { name: 'loggerMiddleware', step: 'initialize', override: true };
  export const getLoggerPlugin = () => ({ applyToStack() {} });`,
  // Clients retry in the SDK's standard mode. Its adaptive mode, off by default, limits calls by its own clock.
  '@smithy/core/dist-es/submodules/retry/util-retry/AdaptiveRetryStrategy.js': `export class AdaptiveRetryStrategy {
    constructor() { throw new Error('The adaptive retry mode is left out of the bundles: infra/build/start-plugins.ts'); }
  }`,
  // A region comes from the environment, never from the metadata service of a virtual machine.
  '@smithy/core/dist-es/submodules/config/config-resolver/regionConfig/getInstanceMetadataRegion.js':
    'export const getInstanceMetadataRegion = async () => undefined;',
  // Lambda detects loops through SQS, SNS and S3 by this header, none through the services that functions call.
  '@aws-sdk/core/dist-es/submodules/client/middleware-recursion-detection/recursionDetectionMiddleware.js':
    'export const recursionDetectionMiddleware = () => (next) => next;',
  // No function calls S3.
  '@smithy/core/dist-es/submodules/endpoints/middleware-endpoint/service-customizations/s3.js': `export const
    resolveParamsForS3 = undefined, DOT_PATTERN = undefined, S3_HOSTNAME_PATTERN = undefined, isArnBucketName = undefined,
    isDnsCompatibleBucketName = undefined;`,
  // For endpoint discovery.
  '@aws-sdk/client-dynamodb/dist-es/commands/DescribeEndpointsCommand.js':
    'export const DescribeEndpointsCommand = undefined;',
  // Signs events of event streams.
  '@smithy/signature-v4/dist-es/HeaderFormatter.js': `export class HeaderFormatter {
    format() { throw new Error('Event streams are left out of the bundles: infra/build/start-plugins.ts'); }
  }`,
  // No client gets extensions: code that changes its settings after they are resolved.
  '@aws-sdk/client-dynamodb/dist-es/runtimeExtensions.js': noExtensions,
  '@aws-sdk/client-ssm/dist-es/runtimeExtensions.js': noExtensions,
  '@aws-sdk/client-secrets-manager/dist-es/runtimeExtensions.js': noExtensions,
  // Node's built-in SHA-256 is always available.
  '@smithy/core/dist-es/submodules/checksum/sha256/Sha256Js.js': 'export const Sha256Js = undefined;',
};

/**
 * Replaces the SDK's endpoint rules, an interpreter and tables of 22 KB, by the plain endpoint of each region
 * and the configured endpoint. Throws when FIPS or dual-stack is requested, so that a request for FIPS never
 * silently gets a plain endpoint.
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

/** Nothing but a call makes a pager of a client, so that esbuild keeps all of them, with their commands. */
const pagersInUse: Plugin[] = [
  'client-dynamodb/dist-es/pagination/QueryPaginator.js',
  'client-dynamodb/dist-es/pagination/ScanPaginator.js',
  'lib-dynamodb/dist-es/pagination/QueryPaginator.js',
  'lib-dynamodb/dist-es/pagination/ScanPaginator.js',
].map((file) =>
  rewriteFile(`@aws-sdk/${file}`, replaceOnce('= createPaginator(', '= /* @__PURE__ */ createPaginator(')),
);

/** DynamoDB asks for a pause in seconds; a date is read by JavaScript, without the SDK's own reader of dates. */
const datesOfRetries = rewriteFile(
  '@smithy/core/dist-es/submodules/retry/middleware-retry/parseRetryAfterHeader.js',
  replaceOnce(
    'import { parseRfc7231DateTime } from "@smithy/core/serde";',
    'const parseRfc7231DateTime = (text) => new Date(text);',
  ),
);

/** Matches regions to partitions by the pattern of their names; lists only regions that do not match. */
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

/** Reduces the package.json of an SDK client to its version, the only field that the client reads. */
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
 * For `const { A, B } = await import('...')` esbuild bundles the whole package. For an SDK client that is
 * every command: ten times the code. This plugin bundles only the destructured names.
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
  ...Object.entries(replacedPackages).map(([name, contents]) => replacePackage(name, contents)),
  ...Object.entries(replacedFiles).map(([file, contents]) => replaceFile(file, contents)),
  plainEndpoint('client-dynamodb', 'dynamodb'),
  plainEndpoint('client-ssm', 'ssm'),
  plainEndpoint('client-secrets-manager', 'secretsmanager'),
  ...plainJson,
  ...pagersInUse,
  datesOfRetries,
  partitionsByPattern,
  webStreamsWhenCompared,
  versionAlone,
  namesOfLaterImports,
  builtinsWithoutFacade,
];
