/** What `init` has to know, from options or, where a person is there, from answers. */
import { channelTypeNames } from '../../../shared/upstreams/types/channel-attributes.ts';
import {
  channelSetups,
  channelTypes,
  defaultChannelType,
  type ChannelTypeName,
} from '../../../shared/upstreams/types/channel-types.ts';
import type { AddOptions } from '../../../shared/operate/channels/add-channel.ts';
import { usageFailure } from '../../../shared/operate/operator-failure.ts';
import { readSecret } from './secret-commands.ts';
import { parameterName } from '../../../shared/config/rows/secret-reference.ts';
import { fromEnvironment } from '../../../shared/adapters/secrets/aws-secret-writer.ts';
import { optionOf } from './own-attributes.ts';
import type { Session } from '../session/session.ts';
import { surroundings } from './terminal/process-context.ts';
import { ask, isAttended } from './terminal/terminal.ts';

export interface InitOptions {
  type?: string;
  id?: string;
  endpoint?: string;
  attributes: NonNullable<AddOptions['attributes']>;
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

/** All of the new channel but its models and its secret. */
export async function askUpstream(options: InitOptions): Promise<Omit<AddOptions, 'models'>> {
  const names = channelTypeNames.join(', ');
  const usual = defaultChannelType;
  const typed = await answer(options.type, { name: '--type', question: `Type (${names})`, usual });
  const type = channelTypeNames.find((each) => each === typed);
  if (type === undefined) throw usageFailure(`--type ${typed}: wanted one of ${names}`);
  const id = await answer(options.id, { name: '--id', question: 'Name of the channel', usual: type });
  const { endpoint = '', ...attributes } = await askAttributes(type, options);
  return {
    id,
    ...(type !== usual && { type }),
    ...(endpoint !== '' && { endpoint }),
    attributes,
  };
}

type Answers = { endpoint?: string } & NonNullable<AddOptions['attributes']>;

async function askAttributes(type: ChannelTypeName, options: InitOptions): Promise<Answers> {
  const { endpoint } = options;
  const answers: Answers = endpoint === undefined ? {} : { endpoint };
  for (const { attribute, question, usual, needless } of channelSetups[type].questions) {
    if (needless?.({ endpoint: '', ...answers })) continue;
    const given = attribute === 'endpoint' ? endpoint : options.attributes[attribute];
    answers[attribute] = await answer(given, {
      name: optionOf(attribute),
      question,
      ...(usual && { usual }),
    });
  }
  return answers;
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
  if (isSigned(channel.type) || options.secret === false) return { isNew: false };
  if (options.secret !== undefined) {
    const reference = options.secret;
    const value = await session.secrets.read(reference).catch(() => undefined);
    return { reference, isNew: false, ...(value !== undefined && { value }) };
  }
  if (session.target.local) return askVariable(options);
  const { secretEnv } = options;
  const value =
    secretEnv === undefined ? await readSecret() : fromEnvironment(surroundings.environment, secretEnv);
  if (value === '') throw usageFailure('no key was given on standard input; without one, say --no-secret');
  return { reference: `ssm:${parameterName(session.target.stack, channel.id)}`, value, isNew: true };
}

/** Requests that are signed with the functions' own role carry no key. */
const isSigned = (type: string = defaultChannelType): boolean =>
  channelTypes[type as ChannelTypeName].awsScope !== undefined;

/** A local stack has no store: its functions see the variables of `npm start`. */
async function askVariable({ secretEnv }: InitOptions): Promise<UpstreamSecret> {
  const question = "Variable of the shell of `npm start` that has the upstream's key";
  const name = await answer(secretEnv, { name: '--secret-env (or --no-secret)', question });
  const value = surroundings.environment[name]?.trim();
  return { reference: `env:${name}`, isNew: false, ...(value && { value }) };
}
