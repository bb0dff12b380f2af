/** All functions of the relay, made from their descriptions. */
import { join } from 'node:path';
import type { FunctionUrl } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { functionDescriptions, functionNames, type FunctionName } from './function-descriptions.ts';
import { RelayFunction } from './relay-function.ts';
import type { RelayTables } from './relay-tables.ts';

export interface RelayFunctionsProps {
  relayName: string;
  version: string;
  tables: RelayTables;
  /** Comma-separated values of the origin header that functions accept. */
  acceptedOriginSecrets: string;
  /** The name in the domain option; the distribution's own name is made from the functions, so they cannot know it. */
  publicHost: string | undefined;
  /** Of each function that answers calls. Undefined: none is reserved. */
  reservedConcurrency: number | undefined;
  /** The value of `SEAL_KEYS` of functions that answer calls. */
  sealKeys: string;
  /** The build's output: one folder per function. */
  bundlesFolder: string;
}

export class RelayFunctions extends Construct {
  readonly byName: ReadonlyMap<FunctionName, RelayFunction>;

  constructor(scope: Construct, id: string, props: RelayFunctionsProps) {
    super(scope, id);
    const environment = {
      RELAY_STACK: props.relayName,
      RELAY_VERSION: props.version,
    };
    // A function without a URL checks no origin secret and gets none.
    const originSecrets = (name: FunctionName): string =>
      functionDescriptions[name].url === undefined ? '' : props.acceptedOriginSecrets;
    const { reservedConcurrency } = props;
    const reserves = (name: FunctionName): boolean =>
      reservedConcurrency !== undefined && functionDescriptions[name].answersCalls === true;
    this.byName = new Map(
      functionNames.map((name) => [
        name,
        new RelayFunction(this, name, {
          description: functionDescriptions[name],
          bundleFolder: join(props.bundlesFolder, name),
          environment: {
            ...environment,
            ORIGIN_SECRETS: originSecrets(name),
            ...(functionDescriptions[name].sealsState && { SEAL_KEYS: props.sealKeys }),
            ...nodeOptions(functionDescriptions[name]),
            ...(name === 'config' &&
              props.publicHost !== undefined && { RELAY_PUBLIC_HOST: props.publicHost }),
            ...(reserves(name) && { RELAY_CONCURRENCY: String(reservedConcurrency) }),
          },
          reservedConcurrency: reserves(name) ? reservedConcurrency : undefined,
          relayName: props.relayName,
          tables: props.tables,
        }),
      ]),
    );
    // Rows and balances are read in new forms before they are written in them.
    for (const writer of ['chat', 'responses'] as const)
      for (const reader of ['ledger', 'sweeper', 'grants', 'catalog'] as const)
        this.get(writer).node.addDependency(this.get(reader));
  }

  /** Returns a function by name; every described function exists. */
  get(name: FunctionName): RelayFunction {
    const found = this.byName.get(name);
    if (found === undefined) throw new Error(`no function ${name}`);
    return found;
  }

  /** Returns the Function URL of a function that a route uses. */
  url(name: FunctionName): FunctionUrl {
    const { url } = this.get(name);
    if (url === undefined) throw new Error(`a route leads to function ${name}, which has no URL`);
    return url;
  }
}

const nodeOptions = ({ nodeOptions: options }: { nodeOptions?: string }): Record<string, string> =>
  options === undefined ? {} : { NODE_OPTIONS: options };
