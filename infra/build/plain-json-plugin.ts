/** esbuild plugins that put `shared/adapters/dynamodb/plain-json-protocol.ts` in the place of the SDK's protocol, schemas and their tables. */
import { join } from 'node:path';
import type { Plugin } from 'esbuild';
import { jsonOperations } from './json-operations.ts';
import { projectFolder, replaceFile, replacePackage, rewriteFile } from './replace.ts';

/** Every other error of DynamoDB is a DynamoDBServiceException with the same name, status and message. */
const classesOfErrors = [
  // `shared/adapters/dynamodb/dynamo-client.ts` asks for these.
  'ConditionalCheckFailedException',
  'TransactionCanceledException',
  // The SDK repeats the call because the class says so; others that it repeats it knows by name or status.
  'ReplicatedWriteConflictException',
];

const protocolPath = JSON.stringify(
  join(projectFolder, 'shared', 'adapters', 'dynamodb', 'plain-json-protocol.ts'),
);

const protocolFile = (version: '1_0' | '1_1'): Plugin =>
  replaceFile(
    `@aws-sdk/core/dist-es/submodules/protocols/json/AwsJson${version}Protocol.js`,
    `import { randomUUID } from 'node:crypto';
    import { HttpRequest } from '@smithy/core/transport';
    import { PlainJsonProtocol } from ${protocolPath};
    export class AwsJson${version}Protocol extends PlainJsonProtocol {
      constructor(settings) {
        const contentType = 'application/x-amz-json-${version.replace('_', '.')}';
        super(settings, { HttpRequest, newId: randomUUID, contentType });
      }
    }`,
  );

/** The SDK's operations are arrays whose first entry is 9; with another, it asks nothing about their schemas. */
const operationText = (name: string, operation: object | undefined): string =>
  `export const ${name}$ = ${operation && JSON.stringify([0, '', name, 0, operation])};`;

/** Commands of other operations stay importable, and throw when they are sent. */
const schemas = (client: string): Plugin =>
  rewriteFile(`@aws-sdk/${client}/dist-es/schemas/schemas_0.js`, (source) => {
    const names = [...source.matchAll(/^export var (\w+)\$ = \[9, n0, /gm)].map(([, name = '']) => name);
    const base = /import \{ (\w+ServiceException) \}/.exec(source)?.[1];
    const operations = jsonOperations[client] ?? {};
    const missing = Object.keys(operations).filter((name) => !names.includes(name));
    if (missing.length > 0 || base === undefined)
      throw new Error(`${client} writes its schemas in another way now: ${missing.join(' ')}`);
    const classes = client === 'client-dynamodb' ? classesOfErrors.join(', ') : '';
    return [
      `import { ${base} as Base } from '../models/${base}';`,
      classes && `import { ${classes} } from '../models/errors';`,
      `export const errorTypeRegistries = { Base, classes: { ${classes} } };`,
      ...names.map((name) => operationText(name, operations[name])),
    ].join('\n');
  });

const core = '@smithy/core/dist-es/submodules';

export const plainJson: Plugin[] = [
  protocolFile('1_0'),
  protocolFile('1_1'),
  ...Object.keys(jsonOperations).map(schemas),
  replacePackage('@aws-sdk/dynamodb-codec', 'export class DynamoDBJsonCodec2 {}'),
  // Asked only about the schemas that the above left out.
  replaceFile(
    `${core}/schema/schemas/NormalizedSchema.js`,
    `export class NormalizedSchema {
      static of() { throw new Error('Schemas are left out of the bundles: infra/build/plain-json-plugin.ts'); }
    }
    export const isStaticSchema = () => false, simpleSchemaCacheN = undefined, simpleSchemaCacheS = undefined;`,
  ),
  // Leaves out members from the SDK's log, which is off.
  replaceFile(
    `${core}/client/smithy-client/schemaLogFilter.js`,
    'export const schemaLogFilter = (schema, data) => data;',
  ),
];
