/** The command `init`: prepares an empty stack for its first answer: prices, a channel, a grant and a key, by options or by questions. */
import { InvalidArgumentError, type Command } from 'commander';
import { findSecretUse } from '../../../../shared/config/rows/channel-row.ts';
import { buildSecretPath } from '../../../../shared/config/rows/secret-reference.ts';
import { carryOutGrant, planGrantAmount } from '../../../../shared/operate/customers/grants.ts';
import {
  channelRowOf,
  planAddChannel,
  type ChannelInput,
} from '../../../../shared/operate/channels/edit-channel.ts';
import { listOfferedModels } from '../../../../shared/operate/channels/sync-models.ts';
import { awaitPublished } from '../../../../shared/operate/config/write-rows.ts';
import { carryOutKey, planCreateKey } from '../../../../shared/operate/keys/edit-key.ts';
import { formatCount, formatWrittenMoney, Failure, usageFailure } from '../../../../shared/operate/plan.ts';
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import {
  planFirstPrices,
  type FirstPrices,
  type FirstPricesPlan,
  type TypedPrice,
} from '../../../../shared/operate/prices/first-prices.ts';
import { carryOutWrites } from '../../../../shared/operate/rows.ts';
import {
  carryOutStoreSecret,
  planStoreSecret,
  type StoreSecretPlan,
} from '../../../../shared/operate/secrets.ts';
import { matchNames } from '../../../../shared/upstreams/channel-type.ts';
import {
  channelTypeNames,
  listOwnAttributes,
  findTypesWith,
} from '../../../../shared/upstreams/types/channel-attributes.ts';
import {
  channelSetups,
  channelTypes,
  defaultChannelType,
  type ChannelTypeName,
} from '../../../../shared/upstreams/types/channel-types.ts';
import { parseTypedList } from '../../fields/row-field.ts';
import { describeGrantOutcome } from '../../outcomes.ts';
import { defineChange, printOutcome, defineWrite, type CommandRun } from '../command.ts';
import {
  parseDecimalText,
  parseList,
  parseModelPrice,
  parseNumber,
  parsePricePair,
} from '../option-values.ts';
import type { Terminal } from '../terminal.ts';
import { readListFile } from '../text-files.ts';
import { formatGrantJson } from './grant.ts';
import { formatNewKey, printNewKey } from './key.ts';

interface InitOptions {
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

const typeMeans = `${channelTypeNames.join(', ')} (default: ${defaultChannelType})`;

/** `--api-version` for `api_version`. */
const composeTypeOption = (attribute: string): string => `--${attribute.replaceAll('_', '-')}`;

/** Options for the attributes that only some channel types have. */
const typeOptions: Readonly<Record<string, string>> = Object.fromEntries(
  listOwnAttributes().map(({ name, attribute }) => [
    `${composeTypeOption(name)} <${name.split('_').at(-1)}>`,
    `${attribute.about} (${findTypesWith(name).join(', ')})`,
  ]),
);

const readTypeAttributes = (command: Command): InitOptions['attributes'] =>
  Object.fromEntries(
    listOwnAttributes().flatMap(({ name }) => {
      const option = command.options.find(({ long }) => long === composeTypeOption(name));
      const value: unknown = option && command.getOptionValue(option.attributeName());
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );

export const initCommand = defineChange('init', {
  does: 'set up a first channel, its prices, a customer and a key; prints a curl command to try it',
  takes: {
    '--type <type>': typeMeans,
    '--id <id>': 'channel id (default: the type)',
    '--endpoint <url>': 'base URL of the upstream (default: from the type)',
    ...typeOptions,
    '--models <a,b>': ['models to serve', parseList],
    '--price <model=in/out>': ['yuan per million input and output tokens; repeatable', parseModelPrice],
    '--prices <file>': 'public price list in US dollars, as for `charge import`',
    '--rate <yuan>': ['yuan per US dollar, for --prices', parseDecimalText],
    '--markup <percent>': ['markup, for --prices', parseDecimalText],
    '--free <a,b>': ['models to give away for free', parseList],
    '--secret <reference>': "reference to the upstream's API key, if it is already stored",
    '--no-secret': 'the upstream needs no API key',
    '--secret-env <NAME>': "environment variable that holds the upstream's API key",
    '--account <name>': 'first customer',
    '--amount <yuan>': 'initial balance of the customer in yuan (default: 0)',
    '--wait <seconds>': ['how long to wait until the change is live', parseNumber, 30],
  },
  notes: `
Asks for everything the options leave open. Without a terminal, it reads the upstream's API key from standard input.
Every model needs a price (--price or --prices) or --free: calls to models without a price are refused.`,
  examples: [
    'init --stack relay',
    'init --secret-env OPENAI_API_KEY --models gpt-4o-mini --price gpt-4o-mini=1.08/4.32 --account me --amount 10 --yes',
    'init --stack relay --models gpt-4o-mini --prices prices.json --rate 7.2 --markup 20 --account me',
    'init --endpoint http://127.0.0.1:11434/v1 --no-secret --models llama3 --free llama3 --account me --yes',
  ],
  plan: (run, options: InitOptions, command: Command) =>
    planInit(run, { ...options, attributes: readTypeAttributes(command) }),
});

async function planInit(run: CommandRun, options: InitOptions) {
  const { ports, terminal } = run;
  const answer = createAsker(terminal);
  const upstream = await askUpstream(answer, options);
  const secret = await askSecret(terminal, ports, { channel: upstream, options });
  const { reference, value, storing } = secret;
  const facts = { ...upstream, secret: reference };
  const input = { ...facts, models: options.models ?? (await askModels(terminal, ports, { facts, value })) };
  const channel = await planAddChannel(ports, input);
  const prices = await askPrices(run, answer, { models: input.models, options });
  const account = await answer(options.account, {
    name: '--account',
    question: 'Name of the first customer',
  });
  const question = 'Initial balance in yuan';
  const amount = await answer(options.amount, { name: '--amount', question, usual: '0' });
  const first = { account, amount, id: 'init', reason: 'first amount', new: true };
  const grant = Number(amount) === 0 ? undefined : await planGrantAmount(ports, first);
  const key = await planCreateKey(ports, { account });
  // Before the key is made: what fails after that would lose it.
  const baseUrl = await ports.baseUrl();
  const body = { model: input.models[0], stream: true, messages: [{ role: 'user', content: 'Hello!' }] };
  const composeCurl = (secretKey: string): string =>
    `curl -N ${baseUrl ?? 'BASE_URL'}/chat/completions -H "Authorization: Bearer ${secretKey}" -H "Content-Type: application/json" -d '${JSON.stringify(body)}'`;
  return defineWrite({
    plan: {
      changes: [...prices.changes, ...channel.changes, ...(grant?.changes ?? []), ...key.changes],
      effect: [
        ...prices.effect,
        `Create channel ${input.id} with ${formatCount(input.models.length, 'model')} (${reference ?? 'no secret'})`,
        `Credit ${formatWrittenMoney(amount)} to ${account} and create a key`,
      ],
      questions: ['Continue?'],
      warnings: [...channel.warnings, ...(prices.warnings ?? []), ...prices.unpriced.map(describeUnpriced)],
    },
    /** Prices come before the channel that serves the models: no call in between is free. */
    async carryOut() {
      if (storing) await carryOutStoreSecret(ports, storing, value ?? '');
      await carryOutWrites(ports, prices);
      const granted = grant && (await carryOutGrant(ports, grant, options.wait * 1000));
      await carryOutWrites(ports, channel);
      const unpublished = await explainUnpublished(ports, options.wait);
      return { ...(await terminal.revealMade(carryOutKey(ports, key))), granted, unpublished };
    },
    print(shown, { granted, unpublished, ...made }) {
      if (storing) shown.print(`Stored the secret as ${storing.reference}.`);
      if (grant && granted) printOutcome(shown, describeGrantOutcome(grant, granted));
      if (unpublished === undefined) shown.print('Saved; live within 10 s.');
      else shown.remark(unpublished);
      printNewKey(shown, { ...key, ...made });
      if (baseUrl === undefined) shown.remark('Replace BASE_URL with the stack output BaseUrl.');
      shown.print(`\n${composeCurl(made.secretKey)}`);
    },
    facts: (made) => ({
      channel: input.id,
      unpriced: prices.unpriced,
      ...formatNewKey(key, made),
      ...(made && {
        curl: composeCurl(made.secretKey),
        ...(grant && { grant: formatGrantJson(grant, made.granted) }),
      }),
    }),
  });
}

const describeUnpriced = (model: string): string =>
  `${model} has no price: its calls are refused until you set one with \`charge price\``;

/** Asks for models, and shows the upstream's list if there is one. */
async function askModels(
  { ask, isAttended, ...terminal }: Terminal,
  ports: OperatorPorts,
  { facts, value }: { facts: Omit<ChannelInput, 'models'>; value: string | undefined },
): Promise<string[]> {
  if (!isAttended) throw usageFailure('--models is required: there is no terminal to ask');
  const { names: listed, warnings } = await listOfferedModels(ports, facts, value);
  warnings.forEach(terminal.remark);
  if (listed.length > 0) terminal.print(listed.join('  '));
  for (;;) {
    const wanted = parseTypedList(await ask('Models to serve, separated by commas (* matches anything):'));
    if (wanted.length === 0) continue;
    if (listed.length === 0) return wanted;
    const unlisted = wanted.filter((each) => matchNames([each], listed).length === 0);
    if (unlisted.length === 0) return matchNames(wanted, listed);
    terminal.remark(`The upstream does not list ${unlisted.join(', ')}.`);
  }
}

/** If nothing was published in time, the rows are still valid, so a key is made anyway. */
const explainUnpublished = (ports: OperatorPorts, waitSeconds: number): Promise<string | undefined> =>
  awaitPublished(ports, waitSeconds).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof Failure) return error.message;
      throw error;
    },
  );

interface Question {
  /** The option that gives the answer. */
  name: string;
  question: string;
  usual?: string;
}

type OptionAsker = (option: string | undefined, question: Question) => Promise<string>;

/** Returns the option's value, else a person's answer, else `usual`. Throws a Failure if there is none. */
const createAsker =
  ({ ask, isAttended }: Terminal): OptionAsker =>
  async (option, { name, question, usual }) => {
    if (option !== undefined) return option;
    if (!isAttended && usual !== undefined) return usual;
    if (!isAttended) throw usageFailure(`${name} is required: there is no terminal to ask`);
    let typed = '';
    while (typed === '') typed = (await ask(`${question}${usual ? ` [${usual}]` : ''}:`)) || (usual ?? '');
    return typed;
  };

async function askUpstream(answer: OptionAsker, options: InitOptions): Promise<Omit<ChannelInput, 'models'>> {
  const names = channelTypeNames.join(', ');
  const usual = defaultChannelType;
  const typed = await answer(options.type, { name: '--type', question: `Type (${names})`, usual });
  const type = channelTypeNames.find((each) => each === typed);
  if (type === undefined) throw usageFailure(`invalid --type ${typed}: use one of ${names}`);
  const id = await answer(options.id, { name: '--id', question: 'Channel id', usual: type });
  const { endpoint = '', ...attributes } = await askAttributes(answer, type, options);
  return {
    id,
    ...(type !== usual && { type }),
    ...(endpoint !== '' && { endpoint }),
    attributes,
  };
}

type Answers = { endpoint?: string } & InitOptions['attributes'];

async function askAttributes(
  answer: OptionAsker,
  type: ChannelTypeName,
  options: InitOptions,
): Promise<Answers> {
  const { endpoint } = options;
  const answers: Answers = endpoint === undefined ? {} : { endpoint };
  for (const { attribute, question, defaultAnswer: usual, isNeedless: needless } of channelSetups[type]
    .questions) {
    if (needless?.({ endpoint: '', ...answers })) continue;
    const given = attribute === 'endpoint' ? endpoint : options.attributes[attribute];
    answers[attribute] = await answer(given, {
      name: composeTypeOption(attribute),
      question,
      ...(usual && { usual }),
    });
  }
  return answers;
}

interface UpstreamSecret {
  reference?: string;
  value?: string | undefined;
  /** The plan that stores the value under the reference; undefined: it is stored already. */
  storing?: StoreSecretPlan;
}

/** Determines the reference of the upstream's key and, if possible, its value. */
async function askSecret(
  terminal: Terminal,
  { secrets, target }: Pick<OperatorPorts, 'secrets' | 'target'>,
  { channel, options }: { channel: Omit<ChannelInput, 'models'>; options: InitOptions },
): Promise<UpstreamSecret> {
  const { secret, secretEnv } = options;
  const type = (channel.type ?? defaultChannelType) as ChannelTypeName;
  // Requests that the functions' role signs need no key.
  if (channelTypes[type].awsScope || secret === false) return {};
  const variable = {
    name: '--secret-env (or --no-secret)',
    question: "Environment variable of `npm start` that holds the upstream's API key",
  };
  // A local stack has no secret store; its functions read the environment of `npm start`.
  const use = findSecretUse(channelRowOf({ ...channel, models: [] }));
  if (secret !== undefined)
    return { reference: secret, value: await secrets.read(secret, use).catch(() => undefined) };
  if (target.local) {
    const name = await createAsker(terminal)(secretEnv, variable);
    return { reference: `env:${name}`, value: await secrets.variable(name).catch(() => undefined) };
  }
  const wanted = {
    name: buildSecretPath(use, channel.id),
    managed: false,
    replace: false,
    isOfNewChannel: true,
  };
  const storing = planStoreSecret({ target }, wanted);
  const value = secretEnv === undefined ? await terminal.readSecret() : await secrets.variable(secretEnv);
  if (value === '')
    throw usageFailure('no API key on standard input; use --no-secret if the upstream needs none');
  return { reference: storing.reference, value, storing };
}

async function askPrices(
  { ports, terminal }: CommandRun,
  answer: OptionAsker,
  { models, options }: { models: string[]; options: InitOptions },
): Promise<FirstPricesPlan> {
  const { price: typed = {}, free = [] } = options;
  const wanted: FirstPrices = { models, free, typed };
  const known = await planFirstPrices(ports, wanted);
  if (known.unpriced.length === 0) return known;
  const list = await askList(terminal, answer, options);
  const plan = list ? await planFirstPrices(ports, { ...wanted, list }) : known;
  if (plan.unpriced.length === 0) return plan;
  if (!terminal.isAttended)
    throw usageFailure(
      `no price for ${plan.unpriced.join(', ')}: use --price ${plan.unpriced[0]}=INPUT/OUTPUT, --prices FILE or --free ${plan.unpriced[0]}`,
    );
  const asked = await askTyped(terminal, plan.unpriced);
  return planFirstPrices(ports, { ...wanted, typed: { ...typed, ...asked }, list });
}

async function askList(
  { ask, isAttended }: Terminal,
  answer: OptionAsker,
  { prices, rate, markup }: InitOptions,
): Promise<FirstPrices['list']> {
  const file =
    prices ?? (isAttended ? await ask('Price list file in US dollars (Enter to type prices):') : '');
  if (file === '') return undefined;
  const source = await readListFile(file);
  const perDollar = await answer(rate, { name: '--rate', question: 'Yuan per US dollar' });
  const onTop = await answer(markup, { name: '--markup', question: 'Markup in percent', usual: '0' });
  return {
    list: source,
    rate: parseOrFail(parseDecimalText, perDollar),
    markup: parseOrFail(parseDecimalText, onTop),
  };
}

/** A model whose price a person leaves out is refused, which the plan warns of. */
async function askTyped({ ask, remark }: Terminal, models: string[]): Promise<Record<string, TypedPrice>> {
  const typed: Record<string, TypedPrice> = {};
  for (const model of models) {
    for (;;) {
      const written = await ask(
        `Price of ${model}, input/output in yuan per million tokens (Enter for none; its calls are then refused):`,
      );
      if (written === '') break;
      try {
        typed[model] = parsePricePair(written);
        break;
      } catch (error) {
        if (!(error instanceof InvalidArgumentError)) throw error;
        remark(error.message);
      }
    }
  }
  return typed;
}

function parseOrFail<Value>(parse: (written: string) => Value, written: string): Value {
  try {
    return parse(written);
  } catch (error) {
    if (error instanceof InvalidArgumentError) throw usageFailure(error.message);
    throw error;
  }
}
