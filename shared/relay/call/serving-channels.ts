/**
 * Finds what serves a model in the request's configuration. Built once for each model of a snapshot, at the model's
 * first call; must not keep anything of a call, or of names that nobody serves.
 */
import { findRule } from '../../billing/price.ts';
import { parseYuan } from '../../billing/money.ts';
import { buildTariff, findModelLimits, findServiceTiers, type Tariff } from '../../billing/tariff.ts';
import { appliesTo } from '../../config/rows/capabilities.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { listCustomerTerms } from '../../config/customer-prices.ts';
import type { ChargeRow } from '../../config/rows/charge-row.ts';
import { needsPrice, type Snapshot } from '../../config/snapshot.ts';
import { hash53 } from '../../wire/ids.ts';
import type {
  Candidate,
  Serving,
  ChatCall,
  ChannelLimits,
  ModelName,
  NamedModels,
  ServingModel,
} from './call.ts';
import type { AliasSettings } from '../../config/settings.ts';
import { type ChatRequest, logprobTokensMax } from '../../wire/canonical-call.ts';
import { findStoredPath } from '../../upstreams/restricted-fields.ts';
import { outputTokensMin, takesSubmissions } from '../../upstreams/dialects/dialects.ts';
import { tierFactor, windowParam } from '../../wire/service-tier.ts';
import { limitNames } from '../../upstreams/quirks.ts';
import { canCarry, dialectOf, outputTokensMaxOf, upstreamModelOf } from '../../upstreams/called-channel.ts';

const neededCapabilities = ['tools', 'images', 'json_schema'] as const;
/** Capabilities that a call may need and a probe may deny. */
type NeededCapability = (typeof neededCapabilities)[number];

export interface ModelServing extends Serving {
  /** Capabilities that a probe denied to at least one of the channels. */
  readonly denied: ReadonlySet<NeededCapability>;
  /** The rules that name it. */
  readonly charges: readonly ChargeRow[];
}

/** Why no channel may serve a call. */
export type ServingRefusal =
  | { reason: 'model_not_found'; model: string; why: 'no_channel' | 'no_price' }
  | { reason: 'not_capable'; model: string; param: string }
  | { reason: 'stored_content'; param: string }
  | { reason: 'form_not_offered'; model: string; form: string };

/** When a call began, and by what. */
interface PricedCall extends Pick<ChatCall, 'snapshot' | 'startedMs'> {
  /** For a background run: the tariff its call was accepted with. */
  tariff?: Tariff | undefined;
}

/** One for each function: what it has built is forgotten with its snapshot. */
export class ServingChannels {
  readonly #bySnapshot = new WeakMap<Snapshot, Map<string, ModelServing>>();

  /** Finds the channels of a model. Refuses it if no enabled channel lists it, or if it lacks a price that it needs. */
  find({ snapshot, startedMs, tariff }: PricedCall, model: string): ModelServing | ServingRefusal {
    const served = this.#findServed(snapshot, model);
    if (!served) return { reason: 'model_not_found', model, why: 'no_channel' };
    if (tariff?.prices.has(model) || !needsPrice(snapshot, model)) return served;
    const rule = findRule(served.charges, model, startedMs);
    return rule === undefined ? { reason: 'model_not_found', model, why: 'no_price' } : served;
  }

  /** The tariff of a call for these models and its search. */
  tariffOf(
    { snapshot, startedMs: nowMs, account }: Pick<ChatCall, 'snapshot' | 'startedMs' | 'account'>,
    { models, web }: { models: readonly string[]; web: boolean },
  ): Tariff {
    const { limits, search: setting } = snapshot.settings;
    const { defaultOutputTokens } = limits;
    const rulesOf = (model: string) => this.#findServed(snapshot, model)?.charges ?? [];
    const search = web && setting ? parseYuan(setting.price ?? 0) : undefined;
    const termsOf = (model: string) => listCustomerTerms(snapshot.settings, account, model, nowMs);
    return buildTariff({ models, rulesOf, termsOf, defaultOutputTokens, search, nowMs });
  }

  #findServed(snapshot: Snapshot, model: string): ModelServing | undefined {
    const models = this.#bySnapshot.get(snapshot) ?? new Map<string, ModelServing>();
    this.#bySnapshot.set(snapshot, models);
    // Names that nobody serves cost little and leave nothing behind, however many a caller invents.
    const served =
      models.get(model) ?? (snapshot.models.includes(model) ? buildModelServing(snapshot, model) : undefined);
    if (served) models.set(model, served);
    return served;
  }
}

/** The call as one of the models that may answer gets it: stages that serve one model read the fields of this. */
export function callTo<Call extends Pick<ChatCall, 'identity' | 'model' | 'alias'>>(
  call: Call,
  base: string,
): Call {
  if (base === call.model.base) return call;
  const serving = call.alias?.models.find(({ model }) => model === base);
  if (!serving) return call;
  const { model: _model, ...served } = serving;
  const model = Object.freeze({ ...call.model, base });
  const identity = Object.freeze({ ...call.identity, model: base });
  return Object.freeze({ ...call, outputTokensLimit: undefined, ...served, identity, model });
}

function buildModelServing(snapshot: Snapshot, model: string): ModelServing | undefined {
  const serves = ({ models }: { models: readonly string[] }): boolean => models.includes(model);
  const channels = snapshot.channels.filter(serves);
  if (channels.length === 0) return undefined;
  const candidates = channels.flatMap((channel) => candidatesOf(channel, model));
  const isDenied = (needed: NeededCapability): boolean =>
    channels.some((channel) => lacks(channel, model, needed));
  return Object.freeze({
    candidates: Object.freeze(candidates),
    limits: computeChannelLimits(candidates),
    denied: new Set(neededCapabilities.filter(isDenied)),
    charges: Object.freeze(snapshot.charges.filter(serves)),
  });
}

/** True if a probe found that the channel lacks the capability with this model. */
const lacks = ({ can }: ChannelRow, model: string, capability: NeededCapability): boolean =>
  can?.[capability] === false && appliesTo(can, model);

/** A channel without a secret is one candidate. */
export function candidatesOf(channel: ChannelRow, model: string): Candidate[] {
  const { secret: own } = channel;
  // A reference that is listed twice is one secret, with one balance and one limit.
  const secrets = typeof own === 'string' ? [own] : [...new Set(own ?? [undefined])];
  const share = channel.weight / secrets.length;
  return secrets.map((secret) => {
    const id = secret === undefined ? channel.id : `${channel.id}|${secret}`;
    return Object.freeze({ id, channel, secret, model, share, hash: hash53(id) });
  });
}

// Leaves out channels of which a probe found that they cannot do what a call needs, and those whose row does not allow
// what its messages name at the vendor. Must never leave out others.

const fieldThatNeeds: Record<NeededCapability, (request: ChatRequest) => string | undefined> = {
  // Tools of other types run at the upstream, or are dropped.
  tools: ({ tools }) =>
    tools?.some(({ type }) => type === 'function' || type === 'custom') ? 'tools' : undefined,
  images: ({ messages }) => findImage(messages),
  json_schema: ({ response_format: format }) =>
    format?.type === 'json_schema' ? 'response_format' : undefined,
};

/**
 * Keeps the candidates that can serve the call. Assumes that a channel can do everything unless a probe denied it. `model` is
 * the public base name.
 */
export function selectCapable(
  { denied, charges: _charges, ...serving }: ModelServing,
  { model, request }: { model: string; request: ChatRequest },
): Serving | ServingRefusal {
  let { candidates } = serving;
  for (const capability of denied) {
    const param = fieldThatNeeds[capability](request);
    if (param === undefined) continue;
    candidates = candidates.filter(({ channel }) => !lacks(channel, model, capability));
    if (candidates.length === 0) return { reason: 'not_capable', model, param };
  }
  const stored = findStoredPath(request, []);
  if (stored !== undefined) {
    candidates = candidates.filter(
      ({ channel }) => findStoredPath(request, channel.params.allow) === undefined,
    );
    if (candidates.length === 0) return { reason: 'stored_content', param: stored };
  }
  if (candidates === serving.candidates) return serving;
  return { ...serving, candidates: Object.freeze(candidates), limits: computeChannelLimits(candidates) };
}

function findImage(messages: ChatRequest['messages']): string | undefined {
  for (const [i, { content }] of messages.entries()) {
    const j = Array.isArray(content) ? content.findIndex(({ type }) => type === 'image_url') : -1;
    if (j >= 0) return `messages[${i}].content[${j}]`;
  }
  return undefined;
}

/** Returns the model that a call names with its channels, or refuses it if none of them can serve the call. */
export function selectModel(
  name: ModelName,
  found: ModelServing | ServingRefusal,
  request: ChatRequest,
): NamedModels | ServingRefusal {
  if ('reason' in found) return found;
  const capable = selectCapable(found, { model: name.base, request });
  return 'reason' in capable ? capable : { model: Object.freeze(name), ...capable };
}

interface CallToAlias {
  alias: AliasSettings;
  name: ModelName;
  /** Models that the key may use, in order. Must never hold one that its whitelist names neither directly nor by the alias. */
  allowed: readonly string[];
  request: ChatRequest;
}

/**
 * Returns the models of an alias that may answer a call. Leaves out models without a channel that can do what the call needs.
 * If none is left, the refusal is that of the first model that has a channel.
 */
export function selectAliasModels(
  { alias, name, allowed, request }: CallToAlias,
  find: (model: string) => ModelServing | ServingRefusal,
): NamedModels | ServingRefusal {
  let incapable: ServingRefusal | undefined;
  const serving = allowed.flatMap((model): ServingModel[] => {
    const found = find(model);
    if ('reason' in found) return [];
    const capable = selectCapable(found, { model, request });
    if (!('reason' in capable)) return [Object.freeze({ model, ...capable })];
    incapable ??= capable;
    return [];
  });
  const [first, ...rest] = serving;
  if (!first) return incapable ?? { reason: 'model_not_found', model: alias.name, why: 'no_channel' };
  const models = Object.freeze([first, ...rest] as const);
  return {
    model: Object.freeze({ ...name, base: first.model }),
    limits: first.limits,
    candidates: Object.freeze(models.flatMap(({ candidates }) => candidates)),
    alias: Object.freeze({ name: alias.name, onContextLength: alias.onContextLength, models }),
  };
}

const nameOf = ({ channel, model }: Candidate): string => upstreamModelOf(channel, model);

/**
 * Keeps the candidates of one upstream model: vectors of two models can't be compared, and clients compare vectors of many calls.
 * Chooses the model by the rows' priority and order and not by health, so that it stays the same.
 */
export function keepOneModel(named: NamedModels, form: string): NamedModels | ServingRefusal {
  const able = named.candidates.filter(({ channel }) => canCarry(channel, form));
  const [top] = able;
  if (!top) return { reason: 'form_not_offered', model: named.alias?.name ?? named.model.base, form };
  // A row without weight only stands in for others.
  const isFirst = ({ channel, share }: Candidate): boolean =>
    share > 0 && channel.priority === top.channel.priority;
  const name = nameOf(able.find(isFirst) ?? top);
  return { ...named, candidates: Object.freeze(able.filter((one) => nameOf(one) === name)) };
}

/**
 * Keeps the candidates that submit a call in a background window to their vendor, if the window has a price; without such candidates,
 * keeps those that run the call at once at the standard price.
 */
export function keepWindowChannels(
  named: NamedModels,
  tariff: Tariff,
  { service_tier: tier }: ChatRequest,
): NamedModels | ServingRefusal {
  const hasPrice = ({ model }: Candidate): boolean =>
    tierFactor(findServiceTiers(tariff, model), tier ?? '') !== undefined;
  const submitting = named.candidates.filter((one) => submitsWindows(one) && hasPrice(one));
  const kept = submitting.length > 0 ? submitting : named.candidates.filter(runsWindowsAtOnce);
  if (kept.length > 0) return { ...named, candidates: Object.freeze(kept) };
  return { reason: 'not_capable', model: named.alias?.name ?? named.model.base, param: windowParam };
}

export const submitsWindows = ({ channel, model }: Pick<Candidate, 'channel' | 'model'>): boolean =>
  channel.params.completion_windows === 'submit' && takesSubmissions(dialectOf(channel, model));

const runsWindowsAtOnce = ({ channel }: Candidate): boolean =>
  channel.params.completion_windows === 'run_at_once';

// The limit on output tokens of one answer: what the client asked for, else a default.

interface OutputLimit {
  /** The most that any candidate is sent when the balance pays. */
  tokens: number;
  /** The fewest for which the call is made, if the balance covers no more. */
  least: number;
  /** The client asked for this limit, so the whole of it is held if the balance covers it. */
  reservesFully: boolean;
}

const leastTokens = 1_024;
const leastTokensReasoning = 4_096;

/** Efforts that spend few tokens before the answer. */
const lowEfforts: ReadonlySet<string> = new Set(['none', 'minimal', 'low']);

function isReasoning({ request }: Pick<ChatCall, 'request'>): boolean {
  const { reasoning_effort: effort } = request;
  return typeof effort === 'string' && !lowEfforts.has(effort);
}

/**
 * The limit of a call whose client sent none. Reasoning takes its tokens from it, so it is doubled then. Never more than
 * the tokens whose log probabilities the relay can hold.
 */
export function computeDefaultOutputTokens(call: Pick<ChatCall, 'request' | 'tariff' | 'model'>): number {
  const usual = findModelLimits(call.tariff, call.model.base).defaultOutputTokens;
  return Math.min(isReasoning(call) ? 2 * usual : usual, logprobTokensMax(call.request) ?? Infinity);
}

/** The output limit that is reserved, and sent when the balance pays. */
export function computeOutputLimit(
  call: Parameters<typeof computeDefaultOutputTokens>[0] & Pick<ChatCall, 'limits' | 'outputTokensAsked'>,
): OutputLimit {
  const { request, outputTokensAsked, limits: channels, tariff, model } = call;
  const { maxOutputTokens = Infinity } = findModelLimits(tariff, model.base);
  // A client may send both fields, and an upstream may follow either one.
  const fields = [request.max_completion_tokens, request.max_tokens, outputTokensAsked];
  const sent = fields.filter((limit) => typeof limit === 'number');
  const asked = sent.length > 0 ? Math.max(...sent) : undefined;
  const usual = computeDefaultOutputTokens(call);
  const known = Math.min(channels.most, maxOutputTokens);
  return {
    // Zero: the call has no output.
    tokens: asked === 0 ? 0 : Math.max(Math.min(asked ?? usual, known), channels.fewest),
    // A limit that the row sets is sent even if the balance covers less.
    least: Math.max(isReasoning(call) ? leastTokensReasoning : leastTokens, channels.set),
    reservesFully: asked !== undefined && asked <= (Number.isFinite(known) ? known : usual),
  };
}

/** Limits of all candidates' channels. Keep the result: there may be hundreds. */
export function computeChannelLimits(
  candidates: readonly Pick<Candidate, 'channel' | 'model'>[],
): ChannelLimits {
  const most = candidates.map(({ channel, model }) => outputTokensMaxOf(channel, model) ?? Infinity);
  const dialects = new Set(candidates.map(({ channel, model }) => dialectOf(channel, model)));
  const sets = candidates.flatMap(({ channel: { params } }) => limitNames.map((name) => params.set[name]));
  const set = Math.max(0, ...sets.filter((limit) => typeof limit === 'number'));
  const fewest = Math.max(set, ...[...dialects].map(outputTokensMin));
  return Object.freeze({ most: Math.max(...most), fewest, set });
}
