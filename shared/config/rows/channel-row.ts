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
import { rowPartPrices, serviceTiers, tiers } from './charge-row.ts';
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
  type RuleForm,
  type WrittenRules,
} from '../../upstreams/quirks.ts';
import {
  channelTypeNames,
  listOwnAttributes,
  usesDialectPath,
  endpointOf,
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
import { hostOf, normaliseEndpoint, type EndpointRules } from '../../upstreams/endpoint-rules.ts';
import { asRecord } from '../../wire/json.ts';
import { lastGoodNotice, type TableReader } from './read-table.ts';
import {
  checkReferences,
  type NamedSecret,
  type ReferenceRules,
  type SecretUse,
} from './secret-reference.ts';

// What the calls of a channel cost the operator, by the upstream's name of a model.

const yuanCode = 'CNY';
const wantedCurrency = 'a currency code such as "USD"';
const wantedRate = 'yuan per unit of the currency, together with a currency other than CNY';

const CostEntry = z
  .strictObject(
    {
      /** Per 1,000 tokens, as all token prices are. */
      input: z.optional(amount),
      output: z.optional(amount),
      ...rowPartPrices,
      tiers,
      service_tiers: serviceTiers,
      /** Of a call, in addition to its tokens. */
      per_call: z.optional(amount),
      currency: z.optional(z.string(wantedCurrency).check(z.regex(/^[A-Z]{3}$/, wantedCurrency))),
      /** Yuan for one unit of the currency. */
      rate: z.optional(positiveNumber),
    },
    'a map {input, output, cached_input, ..., per_call, currency, rate}',
  )
  .check(
    z.refine(isPriced, 'prices of both input and output, or per_call alone'),
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

/** Prices of the cache and tiers of either kind are no price without both. */
function isPriced({ input, output, per_call, ...more }: Priced): boolean {
  if (input !== undefined || output !== undefined) return input !== undefined && output !== undefined;
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

const seconds = secondsUpTo(900);
const wantedMapper = 'a map of public model name to upstream model name';
/** The names as the end of a sentence: `"a", "b" or "c"`. */
const oneOf = (names: readonly string[]): string =>
  `${names
    .slice(0, -1)
    .map((name) => `"${name}"`)
    .join(', ')} or "${names.at(-1)}"`;
const named = <Name extends string>(names: readonly Name[]) => z.optional(z.enum(names, oneOf(names)));

const wantedDialect = `${oneOf(dialectNames)}, or a map of public model name to one of them`;
const wantedEfforts = `a list of ${oneOf(effortScale)}`;
const wantedSome = `${wantedEfforts}, or no attribute instead of an empty list`;
const wantedSet = 'a map of request fields, with values that JSON can hold (lists, no sets)';

function ruleSchema(form: RuleForm) {
  if (form === 'flag') return flag;
  if ('most' in form) {
    const { least, most } = form;
    return integerBetween(least, most, `a whole number from ${least} to ${most}`);
  }
  if ('oneOf' in form) return z.enum(form.oneOf, oneOf(form.oneOf));
  return z.array(z.enum(form.listOf, oneOf(form.listOf)), `a list of ${oneOf(form.listOf)}`);
}

const wantedRules = 'a map of rules, such as {"efforts": ["low", "high"]}';
/** Names that are unknown here are a warning: a row may be newer than the version that reads it. */
const ModelRules = z.looseObject(
  Object.fromEntries(
    Object.entries(ruleForms).map(([name, [, form]]) => [name, z.optional(ruleSchema(form))]),
  ),
  wantedRules,
) as unknown as z.ZodMiniType<WrittenRules>;
const wantedModels = 'a map of model name, with at most three * for any text, to its rules';

const Params = optionMap(
  {
    /** Fields set in every request. They override the client's fields. */
    set: z._default(z.record(z.string(), jsonValue, wantedSet), {}),
    /** Fields that are not sent to this upstream. */
    drop: z._default(textList, []),
    /** Fields beside those that tenants may send in the dialect, by path, and tools that run at the upstream. */
    allow: z._default(textList, []),
    /** `pass`: fields that the dialect does not list go up, too, unless their name means money, another host or what is stored. Absent: `drop`. */
    unknown_fields: named(unknownFieldChoices),
    max_output_tokens: z.optional(positiveInteger),
    /** false: `stream: true` is never sent; the upstream's JSON answer is converted to a stream. */
    stream: z._default(flag, true),
    /** false: `stream_options.include_usage` is not sent. */
    include_usage: z._default(flag, true),
    /** The rest says how the upstream differs from its dialect: see Quirks. Absent: as type and model have it. */
    call_ids: named(callIdForms),
    system: named(systemPlaces),
    null_content: named(nullContents),
    think_tags: z.optional(flag),
    efforts: z.optional(
      z.array(z.enum(effortScale, oneOf(effortScale)), wantedEfforts).check(z.minLength(1, wantedSome)),
    ),
    custom_tools: z.optional(flag),
    wants_back: named(returnedFields),
    /** The same for some models, by their public or the upstream's name, and what else the table of models says. */
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

const optionalText = ({ wanted, pattern }: OwnAttribute) =>
  z.optional(z.string(wanted).check(z.regex(pattern, wanted)));

/** Attributes that only rows of some types may have; channel-attributes.ts refuses them in other rows. */
const ownAttributeSchemas = Object.fromEntries(
  listOwnAttributes().map(({ name, attribute }) => [name, optionalText(attribute)]),
) as Record<OwnAttributeName, ReturnType<typeof optionalText>>;

/** A row of the table `channels`: one upstream, the models that it serves and how it is called. */
export const ChannelRow = z.strictObject({
  id: rowId,
  name: z._default(z.string('a text'), ''),
  type: z._default(z.enum(channelTypeNames, oneOf(channelTypeNames)), defaultChannelType),
  /** For all models, or by public name. Absent: as the type has it. */
  dialect: z.optional(
    z.union(
      [z.enum(dialectNames), z.record(modelName, z.enum(dialectNames, oneOf(dialectNames)))],
      wantedDialect,
    ),
  ),
  /**
   * The base address including `/v1`. Empty if the row has none, until `readChannel` replaces it with the
   * type's own address. endpoint-rules.ts decides which addresses are allowed.
   */
  endpoint: z._default(text, ''),
  ...ownAttributeSchemas,
  /** References such as `ssm:/relay/<stack>/name`. Absent: no credentials are sent. */
  secret: z.optional(z.union([text, textList], 'a reference, or a list of references')),
  models: modelList,
  /** Public model name -> the upstream's name. */
  mapper: z._default(z.record(modelName, text, wantedMapper), {}),
  cost: channelCost,
  priority: z._default(integer, 0),
  weight: z._default(amount, 1),
  /** Only an explicit true enables a channel. */
  state: z._default(flag, false),
  connect_seconds: z._default(seconds, 5),
  /** Absent: 120, more for long prompts and high effort (relay/dispatch/attempt.ts). */
  first_content_seconds: z.optional(seconds),
  idle_seconds: z._default(seconds, 60),
  total_seconds: z._default(seconds, 600),
  params: z._default(Params, { set: {}, drop: [], allow: [], stream: true, include_usage: true }),
  /** The field for a token limit that the client's chat request does not contain. */
  max_tokens_field: z.optional(z.enum(limitFields, '"max_tokens" or "max_completion_tokens"')),
});
export type ChannelRow = z.infer<typeof ChannelRow> & {
  /** What a probe found, from the mark `_can`. Absent: the channel was not probed. */
  can?: Capabilities;
};

/** Fields of request bodies that the relay writes for every call, whatever the upstream speaks. */
const vitalFields = ['messages', 'input', 'model', 'stream'];

/** Where a row's `params` break every call. Warnings, since rows that work all the same must go on working. */
const vitalWarnings = ({ set, drop }: { set: object; drop: readonly string[] }): string[] => [
  ...vitalFields
    .filter((name) => Object.hasOwn(set, name))
    .map((name) => `params.set: overrides ${name}, which every call needs`),
  ...vitalFields
    .filter((name) => drop.includes(name))
    .map((name) => `params.drop: drops ${name}, which every call needs`),
];

/** What is suspicious in a row that is used, each as `attribute: ...`. */
const channelWarnings = (row: ChannelRow): string[] => [
  ...(row.models.length === 0 ? ['models: empty, so this channel serves no models'] : []),
  // Where a probe was answered, the address is right as it is.
  ...(usesDialectPath(row) && new URL(row.endpoint).pathname === '/' && !row.can?.dialects?.length
    ? ['endpoint: has no path; most upstreams need /v1 at the end']
    : []),
  ...Object.keys(row.mapper)
    .filter((name) => !row.models.includes(name))
    .map((name) => `mapper: maps ${name}, which is not in models`),
  ...row.models
    .filter((name) => name.startsWith('web-') || name.endsWith('-official'))
    .map((name) => `models: ${name} is unreachable: the relay removes web- and -official from model names`),
  ...strangeCosts(row).map((name) => `cost: has ${name}, which is not a model name of the upstream`),
  ...vitalWarnings(row.params),
  ...strangeRules(row),
  ...conflictsWithProbe(row),
];

function strangeCosts({ cost = {}, mapper, models }: ChannelRow): string[] {
  const known = new Set(['*', ...models.map((model) => upstreamModelOf({ mapper }, model))]);
  return Object.keys(cost).filter((name) => !known.has(name));
}

function strangeRules({ models, mapper, params: { model_rules: rules = {} } }: ChannelRow): string[] {
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

/** Where the row asks for what a probe found that the upstream cannot do. */
function conflictsWithProbe(row: ChannelRow): string[] {
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
    ...unspoken.map((name) => `dialect: is ${name}, but the probe found only ${listed(dialects)}`),
    ...unknown.map((effort) => `params.efforts: has ${effort}, but the probe found only ${listed(efforts)}`),
    ...(can.system_anywhere === false && everywhere
      ? ['params.system: is "anywhere", but the probe found that a system message must come first']
      : []),
    ...(can.usage_streaming === false && params.stream && params.include_usage
      ? ['params.include_usage: is true, but the probe found no usage in streams']
      : []),
  ];
}

const listed = (names: readonly string[] = []): string => names.join(', ') || 'none';

/**
 * Reads one row of `channels`: its schema, then the rules beyond it (type, address, secret references).
 * @param rules `local`: loopback addresses and `env:` secrets are allowed
 */
export function readChannel(raw: unknown, rules: EndpointRules & ReferenceRules): RowReading<ChannelRow> {
  const reading = readRow(ChannelRow, raw);
  if ('problem' in reading) return validateSwitch(raw, reading);
  const { can, warnings } = readCapabilities(raw);
  const row = { ...reading.row, endpoint: endpointOf(reading.row) ?? '', ...(can && { can }) };
  const secrets = checkReferences(listChannelSecrets(reading.row), rules);
  const problems = [
    ...findTypeProblems(reading.row, rules),
    ...strangersOf(row).map((name) => `dialect: found ${name}, expected names from models`),
    ...secrets.problems,
    row.secret?.length === 0
      ? 'secret: found an empty list, expected a reference or no attribute'
      : undefined,
  ].filter((problem) => problem !== undefined);
  if (problems.length > 0) return validateSwitch(raw, { problem: [...new Set(problems)].join('; ') });
  const said = [...channelWarnings(row), ...secrets.warnings, ...warnings];
  return acceptRow({ ...row, endpoint: normaliseEndpoint(row.endpoint) }, said);
}

const strangersOf = ({ dialect, models }: ChannelRow): string[] =>
  typeof dialect === 'object' ? Object.keys(dialect).filter((name) => !models.includes(name)) : [];

/** A bad row switches its channel off if `state` is false or cannot be read. */
function validateSwitch(raw: unknown, { problem }: RowProblem): RowProblem {
  const state = z.safeParse(ChannelRow.shape.state, attributeOf(raw, 'state'));
  if (!state.success)
    return { problem: `${problem}; until state is valid, the channel is disabled`, off: true };
  return state.data ? { problem } : { problem, off: true };
}

export const createChannelReader = (rules: EndpointRules & ReferenceRules): TableReader<ChannelRow> => ({
  table: 'channels',
  read: (raw) => readChannel(raw, rules),
  /** Rows of a snapshot have no marks, so the mark of the bad row stays. */
  findReplacement({ problem, raw, lastGood }) {
    if (lastGood === undefined) return undefined;
    const marked = { ...(lastGood as object), _can: attributeOf(raw, '_can') };
    return problem.off ? { raw: { ...marked, state: false } } : { raw: marked, notice: lastGoodNotice };
  },
});

export const secretsOf = ({ secret }: ChannelRow): string[] => [secret ?? []].flat();

/** The references of a row, even of an invalid one, each with the host that would receive the secret. */
export function listChannelSecrets(raw: unknown): NamedSecret[] {
  const { id, secret } = asRecord(plainRow(raw));
  const references = [secret ?? []].flat().filter((each) => typeof each === 'string');
  const { purpose, host } = findSecretUse(raw);
  const row = String(id);
  return references.map((each) => ({ purpose, host, row, at: 'secret', reference: each.trim() }));
}

/** The use of a channel's secrets. The row may be invalid. */
export function findSecretUse(raw: unknown): SecretUse {
  const row = asRecord(plainRow(raw));
  const type = channelTypeNames.find((name) => name === row['type']) ?? defaultChannelType;
  const endpoint = endpointOf({ ...row, type, endpoint: textOf(row, 'endpoint').trim() }) ?? '';
  return { purpose: 'channels', host: hostOf(endpoint) };
}
