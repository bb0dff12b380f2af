/** The schema of a row of `channels`, the rules beyond it, and what looks wrong in a row. */
import * as z from 'zod/mini';
import {
  amount,
  positiveNumber,
  flag,
  integer,
  integerBetween,
  jsonValue,
  modelList,
  modelName,
  optionMap,
  positiveInteger,
  rowId,
  secondsUpTo,
  text,
  textList,
  attributeOf,
  plainRow,
  readRow,
  textOf,
  acceptRow,
  type RowProblem,
  type RowReading,
} from './read-row.ts';
import { runMinutesMax } from '../settings.ts';
import { windows } from './charge-row.ts';
import { areTerms, rowPartPrices, serviceTiers, tiers } from './price-terms.ts';
import type { OwnAttribute } from '../../upstreams/channel-type.ts';
import { dialectNames } from '../../upstreams/dialects/dialects.ts';
import {
  callIdForms,
  effortScale,
  limitFields,
  nullContents,
  returnedFields,
  ruleForms,
  systemPlaces,
  unknownFieldChoices,
  windowChoices,
  type RuleForm,
  type WrittenRules,
} from '../../upstreams/quirks.ts';
import {
  channelTypeNames,
  listOwnAttributes,
  usesDialectPath,
  endpointOf,
  findBalanceReport,
  findTypeProblems,
} from '../../upstreams/types/channel-attributes.ts';
import { defaultChannelType, type OwnAttributeName } from '../../upstreams/types/channel-types.ts';
import { type Capabilities, appliesTo, readCapabilities } from './capabilities.ts';
import {
  dialectOf,
  quirksOf,
  findRowRules,
  matchesRule,
  upstreamModelOf,
} from '../../upstreams/called-channel.ts';
import { errorMeanings, finishMeanings } from '../../upstreams/vocabulary.ts';
import { hostOf, normaliseEndpoint, type EndpointRules } from '../../upstreams/endpoint-rules.ts';
import { channelIdMax } from '../../wire/ids.ts';
import { asRecord, listTexts } from '../../wire/json.ts';
import { lastGoodNotice, type TableReader } from './read-table.ts';
import {
  checkReferences,
  type NamedSecret,
  type ReferenceRules,
  type SecretUse,
} from './secret-reference.ts';

const yuanCode = 'CNY';
const wantedCurrency = 'a currency code such as "USD"';
const wantedRate = 'yuan per unit of the currency, together with a currency other than CNY';

const CostEntry = z
  .strictObject(
    {
      /** Per 1,000 tokens. */
      input: z.optional(amount),
      output: z.optional(amount),
      ...rowPartPrices,
      tiers,
      service_tiers: serviceTiers,
      windows,
      per_call: z.optional(amount),
      currency: z.optional(z.string(wantedCurrency).check(z.regex(/^[A-Z]{3}$/, wantedCurrency))),
      rate: z.optional(positiveNumber),
    },
    'a map {input, output, cached_input, ..., per_call, currency, rate}',
  )
  .check(
    z.refine(isPriced, 'prices of both input and output, or per_call alone'),
    z.refine(({ input, output }) => input !== undefined || output === undefined, {
      error: 'an input cost',
      path: ['input'],
    }),
    z.refine(({ input, output }) => input === undefined || output !== undefined, {
      error: 'an output cost',
      path: ['output'],
    }),
    z.refine(({ windows: all = [] }) => all.every((each) => areTerms(each)), {
      error: 'windows that each have either a factor or prices of both input and output',
      path: ['windows'],
    }),
    z.refine(({ currency = yuanCode, rate }) => (currency !== yuanCode) === (rate !== undefined), {
      error: wantedRate,
      path: ['rate'],
    }),
  );

interface Priced {
  input?: unknown;
  output?: unknown;
  per_call?: unknown;
}

/** Other prices and tiers need both. */
function isPriced({ input, output, per_call, ...more }: Priced): boolean {
  if (input !== undefined || output !== undefined) return true;
  const { currency: _currency, rate: _rate, ...others } = more as Record<string, unknown>;
  return per_call !== undefined && Object.values(others).every((value) => value === undefined);
}

const wantedName = "the upstream's name of a model, or *";

const channelCost = z.optional(
  z.record(
    z.string(wantedName).check(z.regex(/^\S(.*\S)?$/, wantedName)),
    CostEntry,
    "a map of the upstream's model name, or *, to its prices",
  ),
);

const seconds = secondsUpTo(runMinutesMax * 60);
const wantedMapper = 'a map of public model name to upstream model name';
/** `"a", "b" or "c"` */
const oneOf = (names: readonly string[]): string =>
  `${names
    .slice(0, -1)
    .map((name) => `"${name}"`)
    .join(', ')} or "${names.at(-1)}"`;
const optionalName = <Name extends string>(names: readonly Name[]) => z.optional(z.enum(names, oneOf(names)));

const wantedDialect = `${oneOf(dialectNames)}, or a map of public model name to one of them`;
const wantedEfforts = `a list of ${oneOf(effortScale)}`;
const wantedSome = `${wantedEfforts}, or no attribute instead of an empty list`;
const wantedSet = 'a map of request fields, with values that JSON can hold (lists, no sets)';

function buildRuleSchema(form: RuleForm) {
  if (form === 'flag') return flag;
  if ('most' in form) {
    const { least, most } = form;
    return integerBetween(least, most, `a whole number from ${least} to ${most}`);
  }
  if ('oneOf' in form) return z.enum(form.oneOf, oneOf(form.oneOf));
  return z.array(z.enum(form.listOf, oneOf(form.listOf)), `a list of ${oneOf(form.listOf)}`);
}

const wantedRules = 'a map of rules, such as {"efforts": ["low", "high"]}';
/** Unknown names are a warning, because a row may be newer than this version. */
const ModelRules = z.looseObject(
  Object.fromEntries(
    Object.entries(ruleForms).map(([name, [, form]]) => [name, z.optional(buildRuleSchema(form))]),
  ),
  wantedRules,
) as unknown as z.ZodMiniType<WrittenRules>;
const wantedModels = 'a map of model name, with at most three * for any text, to its rules';

const wantedWord =
  'a word or a text of the upstream, with at most three * for any text, but three letters in a row';
const wordPattern = z.string(wantedWord).check(z.regex(/^(?!(?:.*\*){4})(?=.*[^*]{3}).{3,128}$/, wantedWord));
/** Builds the schema of a map from words to meanings. */
const buildWords = <Meaning extends string>(meanings: readonly Meaning[]) =>
  z.optional(
    z.record(wordPattern, z.enum(meanings, oneOf(meanings)), `a map of ${wantedWord}, to ${oneOf(meanings)}`),
  );

const Params = optionMap(
  {
    /** Set in every request, and override the client's fields. */
    set: z._default(z.record(z.string(), jsonValue, wantedSet), {}),
    drop: z._default(textList, []),
    /** More fields, by path, that tenants may send, and tools that run at the upstream. */
    allow: z._default(textList, []),
    /** `pass` also sends fields that the dialect does not list, unless their name means money, another host or storage. */
    unknown_fields: optionalName(unknownFieldChoices),
    max_output_tokens: z.optional(positiveInteger),
    /** false never sends `stream: true`, and converts the upstream's JSON answer to a stream. */
    stream: z._default(flag, true),
    /** false does not send `stream_options.include_usage`. */
    include_usage: z._default(flag, true),
    /** Submits or runs calls in background windows. Absent: they are refused. */
    completion_windows: optionalName(windowChoices),
    /** The other fields are quirks, and override those of type and model. */
    call_ids: optionalName(callIdForms),
    system: optionalName(systemPlaces),
    null_content: optionalName(nullContents),
    think_tags: z.optional(flag),
    efforts: z.optional(
      z.array(z.enum(effortScale, oneOf(effortScale)), wantedEfforts).check(z.minLength(1, wantedSome)),
    ),
    custom_tools: z.optional(flag),
    threads: z.optional(flag),
    wants_back: optionalName(returnedFields),
    /** Meanings of the upstream's words, used before the relay's own vocabulary. */
    words: z.optional(
      optionMap(
        { finish: buildWords(finishMeanings), errors: buildWords(errorMeanings) },
        'a map {finish, errors} of words to their meanings',
      ),
    ),
    /** Quirks of some models, by their public or the upstream's name. */
    model_rules: z.optional(
      z.record(
        z.string(wantedModels).check(z.regex(/^(?!(?:.*\*){4})\S{1,128}$/, wantedModels)),
        ModelRules,
        wantedModels,
      ),
    ),
  },
  'a map {set, drop, allow, max_output_tokens, stream, include_usage, ...}',
);

const matchPattern = ({ wanted, pattern }: OwnAttribute) =>
  z.optional(z.string(wanted).check(z.regex(pattern, wanted)));

/** Attributes of some types. channel-attributes.ts refuses them in rows of other types. */
const ownAttributeSchemas = Object.fromEntries(
  listOwnAttributes().map(({ name, attribute }) => [name, matchPattern(attribute)]),
) as Record<OwnAttributeName, ReturnType<typeof matchPattern>>;

export const ChannelRow = z.strictObject({
  id: rowId,
  name: z._default(z.string('a text'), ''),
  type: z._default(z.enum(channelTypeNames, oneOf(channelTypeNames)), defaultChannelType),
  /** For all models, or by public name. The type has a default. */
  dialect: z.optional(
    z.union(
      [z.enum(dialectNames), z.record(modelName, z.enum(dialectNames, oneOf(dialectNames)))],
      wantedDialect,
    ),
  ),
  /** The base address including `/v1`. `readChannel` replaces an empty one with the type's address. */
  endpoint: z._default(text, ''),
  ...ownAttributeSchemas,
  /** References such as `ssm:/relay/<stack>/name`. */
  secret: z.optional(z.union([text, textList], 'a reference, or a list of references')),
  models: modelList,
  /** Public model name -> the upstream's name. */
  mapper: z._default(z.record(modelName, text, wantedMapper), {}),
  cost: channelCost,
  /** In the vendor's unit. */
  balance_below: z.optional(positiveNumber),
  priority: z._default(integer, 0),
  weight: z._default(amount, 1),
  /** Only an explicit true enables a channel. */
  state: z._default(flag, false),
  connect_seconds: z._default(seconds, 5),
  /** The default is 120, and more for long prompts and high effort (relay/dispatch/attempt.ts). */
  first_content_seconds: z.optional(seconds),
  idle_seconds: z._default(seconds, 60),
  total_seconds: z._default(seconds, 600),
  params: z._default(Params, { set: {}, drop: [], allow: [], stream: true, include_usage: true }),
  /** The field for a token limit that the client's chat request does not contain. */
  max_tokens_field: z.optional(z.enum(limitFields, '"max_tokens" or "max_completion_tokens"')),
});
export type ChannelRow = z.infer<typeof ChannelRow> & {
  can?: Capabilities;
};

/** The relay writes these fields for every call, in every dialect. */
const vitalFields = ['messages', 'input', 'model', 'stream'];

/** Such `params` break every call, but only get a warning, because rows that happen to work must go on working. */
const checkVitalFields = ({ set, drop }: { set: object; drop: readonly string[] }): string[] => [
  ...vitalFields
    .filter((name) => Object.hasOwn(set, name))
    .map((name) => `params.set: overrides ${name}, which every call needs`),
  ...vitalFields
    .filter((name) => drop.includes(name))
    .map((name) => `params.drop: drops ${name}, which every call needs`),
];

const checkChannel = (row: ChannelRow): string[] => [
  ...listTexts(
    row.id.length > channelIdMax &&
      `id: has over ${channelIdMax} characters, so channels whose ids start alike share figures and marks`,
    row.models.length === 0 && 'models: empty, so this channel serves no models',
    // If a probe was answered, the address is right.
    usesDialectPath(row) &&
      new URL(row.endpoint).pathname === '/' &&
      !row.can?.dialects?.length &&
      'endpoint: has no path; most upstreams need /v1 at the end',
    row.balance_below !== undefined &&
      !findBalanceReport(row) &&
      'balance_below: nothing is checked, because the upstream reports no balance in a known form',
  ),
  ...Object.keys(row.mapper)
    .filter((name) => !row.models.includes(name))
    .map((name) => `mapper: maps ${name}, which is not in models`),
  ...row.models
    .filter((name) => name.startsWith('web-') || name.endsWith('-official'))
    .map((name) => `models: ${name} is unreachable: the relay removes web- and -official from model names`),
  ...findStrangeCosts(row).map((name) => `cost: has ${name}, which is not a model name of the upstream`),
  ...checkVitalFields(row.params),
  ...checkModelRules(row),
  ...checkAgainstProbe(row),
];

function findStrangeCosts({ cost = {}, mapper, models }: ChannelRow): string[] {
  const known = new Set(['*', ...models.map((model) => upstreamModelOf({ mapper }, model))]);
  return Object.keys(cost).filter((name) => !known.has(name));
}

function checkModelRules({ models, mapper, params: { model_rules: rules = {} } }: ChannelRow): string[] {
  const strangers = Object.keys(rules).filter(
    (name) => !models.some((model) => matchesRule({ mapper }, name, model)),
  );
  const unknown = Object.entries(rules).flatMap(([name, own]) =>
    Object.keys(own).flatMap((rule) => (Object.hasOwn(ruleForms, rule) ? [] : [[name, rule.slice(0, 40)]])),
  );
  return [
    ...strangers.map((name) => `params.model_rules: has ${name}, which is not a model of this channel`),
    ...unknown.map(([name, rule]) => `params.model_rules.${name}: has ${rule}, which is not a known rule`),
  ];
}

/** Warns of options that the upstream lacks, according to a probe. */
function checkAgainstProbe(row: ChannelRow): string[] {
  const { can = {}, params } = row;
  const { dialects, efforts } = can;
  const models = row.models.filter((model) => appliesTo(can, model));
  if (models.length === 0) return [];
  const spoken = new Set(models.map((model) => dialectOf(row, model)));
  const unspoken = dialects ? [...spoken].filter((name) => !dialects.includes(name)) : [];
  const said = models.flatMap((model) => findRowRules(row, model).efforts ?? params.efforts ?? []);
  const unknown = efforts ? [...new Set(said)].filter((effort) => !efforts.includes(effort)) : [];
  const everywhere = models.some((model) => quirksOf(row, model).systemPosition === 'anywhere');
  return [
    ...unspoken.map((name) => `dialect: is ${name}, but the probe found only ${joinOrNone(dialects)}`),
    ...unknown.map(
      (effort) => `params.efforts: has ${effort}, but the probe found only ${joinOrNone(efforts)}`,
    ),
    ...listTexts(
      can.system_anywhere === false &&
        everywhere &&
        'params.system: is "anywhere", but the probe found that a system message must come first',
      can.usage_streaming === false &&
        params.stream &&
        params.include_usage &&
        'params.include_usage: is true, but the probe found no usage in streams',
    ),
  ];
}

const joinOrNone = (names: readonly string[] = []): string => names.join(', ') || 'none';

/** Checks the schema, then the type's rules, the address and the secret references. */
export function readChannel(raw: unknown, rules: EndpointRules & ReferenceRules): RowReading<ChannelRow> {
  const reading = readRow(ChannelRow, raw);
  if ('problem' in reading) return readSwitch(raw, reading);
  const { can, warnings } = readCapabilities(raw);
  const row = { ...reading.row, endpoint: endpointOf(reading.row) ?? '', ...(can && { can }) };
  const secrets = checkReferences(listChannelSecrets(reading.row), rules);
  const problems = listTexts(
    ...findTypeProblems(reading.row, rules),
    ...findStrangers(row).map((name) => `dialect: found ${name}, expected names from models`),
    ...secrets.problems,
    row.secret?.length === 0 && 'secret: found an empty list, expected a reference or no attribute',
  );
  if (problems.length > 0) return readSwitch(raw, { problem: [...new Set(problems)].join('; ') });
  const absent =
    attributeOf(raw, 'state') === undefined &&
    'state: missing, so this channel is disabled (write true to enable it, or false)';
  const said = listTexts(absent, ...checkChannel(row), ...secrets.warnings, ...warnings);
  return acceptRow({ ...row, endpoint: normaliseEndpoint(row.endpoint) }, said);
}

const findStrangers = ({ dialect, models }: ChannelRow): string[] =>
  typeof dialect === 'object' ? Object.keys(dialect).filter((name) => !models.includes(name)) : [];

/** An invalid row disables its channel if `state` is false or unreadable. */
function readSwitch(raw: unknown, { problem }: RowProblem): RowProblem {
  const state = z.safeParse(ChannelRow.shape.state, attributeOf(raw, 'state'));
  if (!state.success)
    return { problem: `${problem}; until state is valid, the channel is disabled`, off: true };
  return state.data ? { problem } : { problem, off: true };
}

export const createChannelReader = (rules: EndpointRules & ReferenceRules): TableReader<ChannelRow> => ({
  table: 'channels',
  read: (raw) => readChannel(raw, rules),
  /** Rows of a snapshot have no `_can`, so the invalid row's is used. */
  findReplacement({ problem, raw, lastGood }) {
    if (lastGood === undefined) return undefined;
    const marked = { ...(lastGood as object), _can: attributeOf(raw, '_can') };
    return problem.off ? { raw: { ...marked, state: false } } : { raw: marked, notice: lastGoodNotice };
  },
});

export const secretsOf = ({ secret }: ChannelRow): string[] => [secret ?? []].flat();

/** Reads invalid rows too. */
export function listChannelSecrets(raw: unknown): NamedSecret[] {
  const { id, secret } = asRecord(plainRow(raw));
  const references = [secret ?? []].flat().filter((each) => typeof each === 'string');
  const { purpose, host } = findSecretUse(raw);
  const row = String(id);
  return references.map((each) => ({ purpose, host, row, at: 'secret', reference: each.trim() }));
}

export function findSecretUse(raw: unknown): SecretUse {
  const row = asRecord(plainRow(raw));
  const type = channelTypeNames.find((name) => name === row['type']) ?? defaultChannelType;
  const endpoint = endpointOf({ ...row, type, endpoint: textOf(row, 'endpoint').trim() }) ?? '';
  return { purpose: 'channels', host: hostOf(endpoint) };
}
