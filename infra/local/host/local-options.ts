import path from 'node:path';
import { StartError } from './start-error.ts';

/** What environment variables of `npm start` may set. */
export interface LocalOptions {
  /** Distribution; 0 takes any free port. */
  port: number;
  /** DynamoDB; 0 takes any free port. */
  dynamodbPort: number;
  /** A running DynamoDB to use instead of starting one. */
  dynamodbEndpoint?: string;
  /** The folder that keeps tables and demo key; undefined keeps nothing. */
  dataFolder: string | undefined;
  /** Where the synthesized template is. */
  templateFolder: string;
  seed: 'demo' | 'none';
  /** A real channel is added when there is a key for it. */
  openaiKey: boolean;
  /** The caller's environment variables that functions get. */
  functionEnvironment: Record<string, string>;
}

/** Throws StartError in plain words when a value cannot be used. */
export function readOptions(environment: NodeJS.ProcessEnv): LocalOptions {
  const seed = environment['RELAY_SEED'] || 'demo';
  if (seed !== 'demo' && seed !== 'none') throw new StartError(`RELAY_SEED is ${seed}; wanted: demo or none`);
  const data = environment['RELAY_DATA'] || '.relay';
  const endpoint = environment['DYNAMODB_ENDPOINT'];
  return {
    port: readPort(environment, 'PORT', 8787),
    dynamodbPort: readPort(environment, 'DYNAMODB_PORT', 8000),
    ...(endpoint && { dynamodbEndpoint: endpoint }),
    dataFolder: data === 'memory' ? undefined : data,
    templateFolder:
      environment['RELAY_TEMPLATE_FOLDER'] || path.resolve(import.meta.dirname, '../../../cdk.out'),
    seed,
    openaiKey: Boolean(environment['OPENAI_API_KEY']),
    functionEnvironment: functionEnvironment(environment),
  };
}

function readPort(environment: NodeJS.ProcessEnv, name: string, usual: number): number {
  const text = environment[name] || String(usual);
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new StartError(`${name} is ${text}; wanted: a port number`);
  return port;
}

/** Everything but AWS_*: a developer's own credentials must not reach a function, nor a function AWS. */
function functionEnvironment(environment: NodeJS.ProcessEnv): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment))
    if (value !== undefined && !name.startsWith('AWS_')) kept[name] = value;
  return kept;
}
