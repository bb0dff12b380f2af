/** What `init` has to know, from options or, where a person is there, from answers. */
import { channelTypeNames, isAzureV1 } from '../../../shared/upstreams/types/channel-row-type.ts';
import type { AddOptions } from '../../../shared/operate/channels/add-channel.ts';
import { usageFailure } from '../../../shared/operate/operator-failure.ts';
import { readSecret } from './secret-commands.ts';
import { parameterName } from '../../../shared/config/rows/secret-reference.ts';
import type { Session } from '../session/session.ts';
import { surroundings } from './terminal/process-context.ts';
import { ask, isAttended } from './terminal/terminal.ts';

export interface InitOptions {
  type?: string;
  id?: string;
  endpoint?: string;
  region?: string;
  apiVersion?: string;
  /** A reference; false: the upstream wants no key. */
  secret?: string | false;
  secretEnv?: string;
  models?: string[];
  account?: string;
  amount?: string;
  /** Seconds. */
  wait: number;
  yes?: boolean;
}

/** `option` if it was given, else what a person answers, else `usual`. Throws a Failure when there is none of these. */
export async function answer(
  option: string | undefined,
  { name, question, usual }: { name: string; question: string; usual?: string },
): Promise<string> {
  if (option !== undefined) return option;
  if (isAttended()) {
    const typed = await ask(`${question}${usual ? ` [${usual}]` : ''}:`);
    if (typed !== '' || usual !== undefined) return typed || (usual ?? '');
    return answer(option, { name, question });
  }
  if (usual !== undefined) return usual;
  throw usageFailure(`${name} is missing, and nobody is here to answer`);
}

const openAiEndpoint = 'https://api.openai.com/v1';

/** All of the new channel but its models and its secret. */
export async function askUpstream(options: InitOptions): Promise<Omit<AddOptions, 'models'>> {
  const names = channelTypeNames.join(', ');
  const type = await answer(options.type, { name: '--type', question: `Type (${names})`, usual: 'openai' });
  if (!channelTypeNames.some((each) => each === type))
    throw usageFailure(`--type ${type}: wanted one of ${names}`);
  const id = await answer(options.id, { name: '--id', question: 'Name of the channel', usual: type });
  const facts = { id, ...(type !== 'openai' && { type }) };
  if (type === 'bedrock') {
    const region = await answer(options.region, { name: '--region', question: 'AWS region of the models' });
    return { ...facts, region };
  }
  if (type === 'azure') return { ...facts, ...(await askAzure(options)) };
  if (type !== 'openai')
    return { ...facts, ...(options.endpoint !== undefined && { endpoint: options.endpoint }) };
  const question = 'Base address of the upstream';
  const endpoint = await answer(options.endpoint, { name: '--endpoint', question, usual: openAiEndpoint });
  return { ...facts, endpoint };
}

async function askAzure(options: InitOptions): Promise<{ endpoint: string; apiVersion?: string }> {
  const question = 'Address of the resource, with /openai/v1 if it has that';
  const endpoint = await answer(options.endpoint, { name: '--endpoint', question });
  if (isAzureV1(endpoint)) return { endpoint };
  const version = { name: '--api-version', question: 'Version of the API', usual: '2024-10-21' };
  return { endpoint, apiVersion: await answer(options.apiVersion, version) };
}

export interface UpstreamSecret {
  /** Undefined: the upstream wants no key. */
  reference?: string;
  /** Undefined: it cannot be read here. */
  value?: string;
  /** The value is to be stored under the reference. */
  isNew: boolean;
}

/** The upstream's key: its reference, and where it is new, its value. */
export async function askSecret(
  session: Session,
  channel: { id: string; type?: string },
  options: InitOptions,
): Promise<UpstreamSecret> {
  if (channel.type === 'bedrock' || options.secret === false) return { isNew: false };
  if (options.secret !== undefined) {
    const reference = options.secret;
    const value = await session.secrets.read(reference).catch(() => undefined);
    return { reference, isNew: false, ...(value !== undefined && { value }) };
  }
  if (session.target.local) return askVariable(options);
  const { secretEnv } = options;
  const value = secretEnv === undefined ? await readSecret() : await session.secrets.read(`env:${secretEnv}`);
  if (value === '') throw usageFailure('no key was given on standard input; without one, say --no-secret');
  return { reference: `ssm:${parameterName(session.target.stack, channel.id)}`, value, isNew: true };
}

/** A local stack has no store: its functions see the variables of `npm start`. */
async function askVariable({ secretEnv }: InitOptions): Promise<UpstreamSecret> {
  const question = "Variable of the shell of `npm start` that has the upstream's key";
  const name = await answer(secretEnv, { name: '--secret-env (or --no-secret)', question });
  const value = surroundings.environment[name]?.trim();
  return { reference: `env:${name}`, isNew: false, ...(value && { value }) };
}
