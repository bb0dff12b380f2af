/**
 * What a channel is for one model: the name there, the dialect, and how it differs from that: what its row says, else its
 * type, else its model.
 */
import type { JsonRecord } from '../../wire/json.ts';
import { defaultDialect } from '../dialects/dialects.ts';
import { noQuirks, type LimitField, type Quirks, type unknownFieldChoices } from '../quirks.ts';
import type { ChannelAttributes, ChannelType } from '../channel-type.ts';
import { channelTypes, type ChannelTypeName, type OwnAttributeName } from './channel-types.ts';

/** The quirks that a row may name in its `params`, by their names there. Absent: as the type and the model have it. */
const paramNames = {
  call_ids: 'callIds',
  system: 'system',
  null_content: 'nullContent',
  think_tags: 'thinkTags',
  efforts: 'efforts',
  custom_tools: 'customTools',
  wants_back: 'wantsBack',
} as const satisfies Record<string, keyof Quirks>;
type QuirkParams = { [Param in keyof typeof paramNames]?: Quirks[(typeof paramNames)[Param]] | undefined };

type QuirkRow = Pick<
  CalledChannel,
  'endpoint' | 'secret' | OwnAttributeName | 'type' | 'max_tokens_field'
> & {
  params: QuirkParams;
};

/** The attributes of a channel's row that a request needs. */
export type CalledChannel = ChannelAttributes<OwnAttributeName> & {
  type: ChannelTypeName;
  /** For all models, or by public name. */
  dialect?: string | Record<string, string> | undefined;
  mapper: Record<string, string>;
  connect_seconds: number;
  max_tokens_field?: LimitField | undefined;
  params: QuirkParams & {
    set: JsonRecord;
    drop: string[];
    allow: string[];
    unknown_fields?: (typeof unknownFieldChoices)[number] | undefined;
    max_output_tokens?: number | undefined;
    stream: boolean;
    include_usage: boolean;
  };
};

/** The upstream's name of a model. */
export const upstreamModel = ({ mapper }: Pick<CalledChannel, 'mapper'>, model: string): string =>
  (Object.hasOwn(mapper, model) ? mapper[model] : undefined) ?? model;

/** The dialect that a channel speaks for a model: the row's choice, else its type's. `model`: the public name. */
export function dialectOf(channel: CalledChannel, model: string): string {
  const { dialect } = channel;
  const chosen =
    typeof dialect === 'object' ? (Object.hasOwn(dialect, model) ? dialect[model] : undefined) : dialect;
  const type: ChannelType<OwnAttributeName> = channelTypes[channel.type];
  return chosen ?? type.dialect?.(upstreamModel(channel, model)) ?? defaultDialect;
}

/** How a channel differs from its dialect for a model. `model`: the public name. */
export const quirksOf = (channel: CalledChannel, model: string): Quirks =>
  channelQuirks(channel, upstreamModel(channel, model));

/** `model`: the upstream's name. */
function channelQuirks(channel: QuirkRow, model: string): Quirks {
  const type: ChannelType<OwnAttributeName> = channelTypes[channel.type];
  return {
    ...noQuirks,
    ...modelQuirks(model, channel.max_tokens_field ?? type.limitField(channel)),
    ...type.quirks?.(channel, model),
    ...namedQuirks(channel.params),
  };
}

/**
 * What vendors' models want whoever serves them, by the upstream's name of the model: one table, a line a rule. Of the
 * lines that fit a name, the first that says something of a field counts. Sources: the vendors' pages of November 2026,
 * or the thread that is named.
 */
interface ModelRule {
  models: RegExp;
  quirks: Partial<Quirks>;
}

const lowToHigh = ['low', 'medium', 'high'];
const lowToXhigh = [...lowToHigh, 'xhigh'];
const lowToMax = [...lowToXhigh, 'max'];

/** OpenAI's names, alone or behind a vendor's name as `openai/` and `openai.`. */
const gpt = (name: string): RegExp => new RegExp(String.raw`(?:^|[./])gpt-${name}`, 'i');
const gemini = (name: string): RegExp => new RegExp(String.raw`\bgemini-${name}`, 'i');

const modelRules: readonly ModelRule[] = [
  // Models that reason accept no temperature but 1, and one of the fields for a limit.
  {
    models: /(^|[./])(o[134]\b|gpt-([5-9]|\d{2})(?!.*chat))/i,
    quirks: { sampling: 'none', limitFields: ['max_completion_tokens'] },
  },
  // Efforts by variant [anomalyco/opencode 26268, 2026-05-08, by the vendor's own refusals; openai/codex 6647, 2025-11-14].
  { models: gpt(String.raw`5-chat`), quirks: { efforts: [] } },
  { models: gpt(String.raw`5\.\d-chat`), quirks: { efforts: ['medium'] } },
  { models: gpt(String.raw`5-pro`), quirks: { efforts: ['high'] } },
  { models: gpt(String.raw`5\.[2-5]-pro`), quirks: { efforts: ['medium', 'high', 'xhigh'] } },
  { models: gpt(String.raw`5\.1-codex-max`), quirks: { efforts: lowToXhigh } },
  { models: gpt(String.raw`5(\.1)?-codex`), quirks: { efforts: lowToHigh } },
  { models: gpt(String.raw`5\.[2-5]-codex`), quirks: { efforts: lowToXhigh } },
  // Efforts by version: "Supported values are" of the vendor's refusals [anomalyco/opencode 4451, 2025-11-18, for 5.1;
  // docs.rs meerkat-core 0.6.25 for 5.2 to 5.5; pydantic/pydantic-ai 7081, July 2026, for 5.6].
  { models: gpt(String.raw`5(?![.\d])`), quirks: { efforts: ['minimal', ...lowToHigh] } },
  { models: gpt(String.raw`5\.1(?!\d)`), quirks: { efforts: ['none', ...lowToHigh] } },
  { models: gpt(String.raw`5\.[2-5](?!\d)`), quirks: { efforts: ['none', ...lowToXhigh] } },
  { models: gpt(String.raw`5\.[6-9](?!\d)`), quirks: { efforts: ['none', ...lowToMax] } },
  // [UKGovernmentBEIS/inspect_ai 5254, 2026-09-04; latest-model guides of 6.1 (2026-09-29) and 6.2 (2026-11-17)]
  { models: gpt(String.raw`(6-astra|6\.1-sol|6\.[2-9])`), quirks: { efforts: lowToMax } },
  { models: gpt(String.raw`6`), quirks: { efforts: ['none', ...lowToMax] } },
  // [platform.openai.com/docs/guides/reasoning; for gpt-oss its model card, 2025-08-05]
  { models: /(^|[./])(o[134]\b|gpt-oss)/i, quirks: { efforts: lowToHigh } },
  // They do not reason: "Unrecognized request argument supplied: reasoning_effort".
  { models: gpt(String.raw`(3\.5|4)`), quirks: { efforts: [] } },
  // Thinking levels [ai.google.dev, "Thinking", "OpenAI compatibility"; ENTERPILOT/GoModel 862, 2026-09-02; vercel/ai
  // 18986, 2026-08-18]. None of these models stops thinking, but for 2.5 Flash.
  { models: gemini(String.raw`(3\.[7-9]|[4-9]|\d{2}|.*-latest$)`), quirks: { efforts: lowToHigh } },
  { models: gemini(String.raw`3(\.1)?-pro`), quirks: { efforts: lowToHigh } },
  { models: gemini(String.raw`(3|2\.5-pro)`), quirks: { efforts: ['minimal', ...lowToHigh] } },
  { models: gemini(String.raw`2\.5`), quirks: { efforts: ['none', 'minimal', ...lowToHigh] } },
  // "Requests ending with a model turn are not supported" [LibreChat-AI/agents 323, 2026-07-21, tried model by model;
  // anomalyco/opencode 47034, 2026-09-03].
  {
    models: gemini(String.raw`(3\.5-flash-lite|3\.[6-9]|[4-9]|\d{2}|.*-latest$)`),
    quirks: { lastTurn: 'user' },
  },
  // A tool loop whose earlier turns lack the field is refused. The names change faster than this table, so every name
  // counts [ad-naan/Adnify 193, 2026-09-15, for `deepseek-flash`]; servers that refuse the field are asked without it.
  { models: /deepseek/i, quirks: { wantsBack: 'reasoning_content' } },
  // `k3` is the name in Kimi's plan for coding.
  { models: /\bkimi\b|(^|\/)k[2-9]\b/i, quirks: { wantsBack: 'reasoning_content' } },
];

/** @param model the upstream's name */
function familyQuirks(model: string): Partial<Quirks> {
  const fitting = modelRules.filter(({ models }) => models.test(model));
  return Object.assign({}, ...fitting.toReversed().map(({ quirks }) => quirks)) as Partial<Quirks>;
}

/** Other servers of such a model may accept another field for a limit: theirs is what the channel says. */
function modelQuirks(model: string, limitField: string): Partial<Quirks> {
  const { limitFields, ...quirks } = familyQuirks(model);
  return limitFields?.some((field) => field === limitField) ? { ...quirks, limitFields } : quirks;
}

const namedQuirks = (params: QuirkParams): Partial<Quirks> =>
  Object.fromEntries(
    Object.entries(paramNames).flatMap(([param, quirk]) => {
      const value = params[param as keyof QuirkParams];
      return value === undefined ? [] : [[quirk, value]];
    }),
  );
