/** Collects the input of `init` from options or, if a person is present, from answers. Writes nothing. */
import type { ChannelInput } from '../../../../shared/operate/channels/add-channel.ts';
import { planStoreSecret, type StoreSecretPlan } from '../../../../shared/operate/channels/store-secret.ts';
import type { TypedPrice } from '../../../../shared/operate/prices/first-prices.ts';
import { usageFailure } from '../../../../shared/operate/operator-failure.ts';
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import { channelTypeNames } from '../../../../shared/upstreams/types/channel-attributes.ts';
import {
  channelSetups,
  channelTypes,
  defaultChannelType,
  type ChannelTypeName,
} from '../../../../shared/upstreams/types/channel-types.ts';
import { optionOf } from '../command/own-attributes.ts';
import { readSecret } from '../terminal/read-secret.ts';
import type { Terminal } from '../terminal/terminal.ts';

export interface InitOptions {
  type?: string;
  id?: string;
  endpoint?: string;
  attributes: NonNullable<ChannelInput['attributes']>;
  /** A secret reference; false: the upstream needs no key. */
  secret?: string | false;
  secretEnv?: string;
  models?: string[];
  price?: Record<string, TypedPrice>;
  /** A file. */
  prices?: string;
  rate?: string;
  markup?: string;
  free?: string[];
  account?: string;
  amount?: string;
  /** Seconds. */
  wait: number;
}

export interface Question {
  /** The option that gives the answer. */
  name: string;
  question: string;
  usual?: string;
}

export type Answer = (option: string | undefined, question: Question) => Promise<string>;

/** Returns the option's value, else a person's answer, else `usual`. Throws a Failure if there is none. */
export const answerFrom =
  ({ ask, isAttended }: Terminal): Answer =>
  async (option, { name, question, usual }) => {
    if (option !== undefined) return option;
    if (!isAttended && usual !== undefined) return usual;
    if (!isAttended) throw usageFailure(`${name} is missing, and nobody is here to answer`);
    let typed = '';
    while (typed === '') typed = (await ask(`${question}${usual ? ` [${usual}]` : ''}:`)) || (usual ?? '');
    return typed;
  };

/** Asks for the new channel, except its models and secret. */
export async function askUpstream(
  answer: Answer,
  options: InitOptions,
): Promise<Omit<ChannelInput, 'models'>> {
  const names = channelTypeNames.join(', ');
  const usual = defaultChannelType;
  const typed = await answer(options.type, { name: '--type', question: `Type (${names})`, usual });
  const type = channelTypeNames.find((each) => each === typed);
  if (type === undefined) throw usageFailure(`--type ${typed}: wanted one of ${names}`);
  const id = await answer(options.id, { name: '--id', question: 'Name of the channel', usual: type });
  const { endpoint = '', ...attributes } = await askAttributes(answer, type, options);
  return {
    id,
    ...(type !== usual && { type }),
    ...(endpoint !== '' && { endpoint }),
    attributes,
  };
}

type Answers = { endpoint?: string } & InitOptions['attributes'];

async function askAttributes(answer: Answer, type: ChannelTypeName, options: InitOptions): Promise<Answers> {
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
  /** Undefined: the upstream needs no key. */
  reference?: string;
  /** Undefined: the value cannot be read here. */
  value?: string | undefined;
  /** The plan that stores the value under the reference; undefined: it is stored already. */
  storing?: StoreSecretPlan;
}

/** Determines the reference of the upstream's key and, if possible, its value. */
export async function askSecret(
  terminal: Terminal,
  { secrets, target }: Pick<OperatorPorts, 'secrets' | 'target'>,
  { channel, options }: { channel: Pick<ChannelInput, 'id' | 'type'>; options: InitOptions },
): Promise<UpstreamSecret> {
  const { secret, secretEnv } = options;
  const type = (channel.type ?? defaultChannelType) as ChannelTypeName;
  // Requests that the functions' role signs need no key.
  if (channelTypes[type].awsScope || secret === false) return {};
  const variable = {
    name: '--secret-env (or --no-secret)',
    question: "Variable of the shell of `npm start` that has the upstream's key",
  };
  // A local stack has no secret store; its functions read the environment of `npm start`.
  if (secret !== undefined)
    return { reference: secret, value: await secrets.read(secret).catch(() => undefined) };
  if (target.local) {
    const name = await answerFrom(terminal)(secretEnv, variable);
    return { reference: `env:${name}`, value: await secrets.variable(name).catch(() => undefined) };
  }
  const wanted = { name: channel.id, managed: false, replace: false, isOfNewChannel: true };
  const storing = planStoreSecret({ target }, wanted);
  const value = secretEnv === undefined ? await readSecret(terminal) : await secrets.variable(secretEnv);
  if (value === '') throw usageFailure('no key was given on standard input; without one, say --no-secret');
  return { reference: storing.reference, value, storing };
}
