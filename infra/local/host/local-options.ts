/** Reads the options of `npm start` from the environment, and rejects invalid ones before anything starts. Keeps secrets in the data folder. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { StartError } from './messages.ts';
import { usualDataFolder } from '../../ops/session/running-stack.ts';

/** Options that environment variables of `npm start` set. */
export interface LocalOptions {
  /** Port of the distribution; 0 picks a free one. */
  port: number;
  /** Port of DynamoDB; 0 picks a free one. */
  dynamodbPort: number;
  /** Address of a running DynamoDB to use instead of starting one. */
  dynamodbEndpoint?: string;
  /** Address of a double of SSM and Secrets Manager, whose secrets functions then read. */
  secretsEndpoint?: string;
  /** Folder of the tables and the demo key. Without it nothing is kept. */
  dataFolder: string | undefined;
  templateFolder: string;
  seed: 'demo' | 'none';
  /** Port of the operators' console; 0 picks a free one. */
  consolePort: number;
  /** The console of operators as it is deployed, with people to log in as. */
  console: boolean;
  /** `server`: one server process answers instead of the functions that have a URL. */
  compute: 'event' | 'server';
  /** True when an OpenAI key is set: a channel to OpenAI is then added. */
  upstreamKey: boolean;
  /** `stderr`: shows all lines of the log, which otherwise are in its file alone. */
  log: 'file' | 'stderr';
  /** The caller's environment variables that are passed to functions. */
  functionEnvironment: Record<string, string>;
}

/** Throws StartError when a value is invalid. */
export function readOptions(environment: NodeJS.ProcessEnv): LocalOptions {
  const data = environment['RELAY_DATA'] || usualDataFolder;
  const endpoint = environment['DYNAMODB_ENDPOINT'];
  const secrets = environment['SECRETS_ENDPOINT'];
  const port = readPort(environment, 'PORT', 8787);
  return {
    port,
    consolePort: readPort(environment, 'CONSOLE_PORT', port === 0 ? 0 : port + 1),
    dynamodbPort: readPort(environment, 'DYNAMODB_PORT', 8000),
    ...(endpoint && { dynamodbEndpoint: endpoint }),
    ...(secrets && { secretsEndpoint: secrets }),
    dataFolder: data === 'memory' ? undefined : data,
    templateFolder:
      environment['RELAY_TEMPLATE_FOLDER'] || path.resolve(import.meta.dirname, '../../../cdk.out'),
    seed: readChoice(environment, 'RELAY_SEED', ['demo', 'none']),
    console: environment['RELAY_CONSOLE'] === '1',
    compute: readChoice(environment, 'RELAY_COMPUTE', ['event', 'server']),
    log: readChoice(environment, 'RELAY_LOG', ['file', 'stderr']),
    upstreamKey: Boolean(environment['OPENAI_API_KEY']),
    functionEnvironment: functionEnvironment(environment),
  };
}

/** The first choice is the default. */
function readChoice<Choice extends string>(
  environment: NodeJS.ProcessEnv,
  name: string,
  choices: readonly [Choice, Choice],
): Choice {
  const given = environment[name] || choices[0];
  const found = choices.find((each) => each === given);
  if (found === undefined) throw new StartError(`invalid ${name} ${given}: use ${choices.join(' or ')}`);
  return found;
}

function readPort(environment: NodeJS.ProcessEnv, name: string, usual: number): number {
  const text = environment[name] || String(usual);
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new StartError(`invalid ${name} ${text}: use a port number`);
  return port;
}

/** All variables except AWS_*, so that no function gets a developer's credentials or reaches AWS. */
function functionEnvironment(environment: NodeJS.ProcessEnv): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment))
    if (value !== undefined && !name.startsWith('AWS_')) kept[name] = value;
  return kept;
}

/** Reads a secret from the data folder, in a file for its owner alone. Writes a new one on the first start or after the folder was emptied. */
export function readOrCreateSecret(
  folder: string | undefined,
  name: string,
  pattern: RegExp,
  fresh: string,
): string {
  if (folder === undefined) return fresh;
  const file = path.join(folder, name);
  const kept = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (pattern.test(kept)) return kept;
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, `${fresh}\n`, { mode: 0o600 });
  return fresh;
}

/** Invented region, account and credentials that all local parts share. */
export const localRegion = 'us-east-1';
export const localAccount = '000000000000';

export const localAccess = {
  region: localRegion,
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
};
