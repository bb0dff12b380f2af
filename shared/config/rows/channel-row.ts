import * as z from 'zod/mini';
import type { OwnAttribute } from '../../upstreams/channel-setup.ts';
import { dialectNames } from '../../upstreams/dialects/dialects.ts';
import {
  callIdForms,
  effortScale,
  limitFields,
  nullContents,
  returnedFields,
  systemPlaces,
  unknownFieldChoices,
} from '../../upstreams/quirks.ts';
import { channelTypeNames, ownAttributes } from '../../upstreams/types/channel-attributes.ts';
import { defaultChannelType, type OwnAttributeName } from '../../upstreams/types/channel-types.ts';
import type { Capabilities } from './capabilities.ts';
import { channelCost } from './channel-cost.ts';
import {
  amount,
  flag,
  integer,
  jsonValue,
  modelList,
  modelName,
  optionMap,
  positiveInteger,
  rowId,
  secondsUpTo,
  text,
  textList,
} from './attribute-schemas.ts';

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

const Params = optionMap(
  {
    /** Fields set in every request. They override the client's fields. */
    set: z._default(z.record(z.string(), jsonValue, wantedSet), {}),
    /** Fields that are not sent to this upstream. */
    drop: z._default(textList, []),
    /**
     * Fields that change the model or the price at the upstream, that steer a gateway there or name what is stored
     * there, and tools that run there. They are dropped unless they are listed here.
     */
    allow: z._default(textList, []),
    /** `drop`: fields that the relay does not know are dropped, too, unless `allow` lists them. Absent: `pass`. */
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
      z.array(z.enum(effortScale, wantedEfforts), wantedEfforts).check(z.minLength(1, wantedSome)),
    ),
    custom_tools: z.optional(flag),
    wants_back: named(returnedFields),
  },
  'a map {set, drop, allow, max_output_tokens, stream, include_usage, ...}',
);

const optionalText = ({ wanted, pattern }: OwnAttribute) =>
  z.optional(z.string(wanted).check(z.regex(pattern, wanted)));

/** Attributes that only rows of some types may have; channel-attributes.ts refuses them in other rows. */
const ownAttributeSchemas = Object.fromEntries(
  ownAttributes().map(({ name, attribute }) => [name, optionalText(attribute)]),
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
   * The base address including `/v1`. Empty if the row has none, until read-channel.ts replaces it with the
   * type's own address. endpoint-rules.ts decides which addresses are allowed.
   */
  endpoint: z._default(text, ''),
  ...ownAttributeSchemas,
  /** References such as `ssm:/relay/<stack>/name`. Absent: no credentials are sent. */
  secret: z.optional(z.union([text, textList], 'a reference, or a list of references')),
  models: modelList,
  /** Public model name -> the upstream's name. */
  mapper: z._default(z.record(modelName, text, wantedMapper), {}),
  /** What the operator pays. Absent: unknown. */
  cost: channelCost,
  priority: z._default(integer, 0),
  weight: z._default(amount, 1),
  /** Only an explicit true enables a channel. */
  state: z._default(flag, false),
  connect_seconds: z._default(seconds, 5),
  /** Absent: 120, more for long prompts and high effort (relay/dispatch/time-limits.ts). */
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
  /** In a snapshot: `first_content_seconds` is the row's own. Absent: see stored-channel.ts. */
  own_first_content?: boolean;
};
