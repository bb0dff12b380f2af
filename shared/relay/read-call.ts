/**
 * Reads a call: path, key, body, model, whitelist, candidates and contents, in this order. All checks read one
 * snapshot; a refusal that clients take as final is decided once more where key or configuration have changed (`refusalAges`). A
 * refusal is a value, a `CallRefusal`, with what was known of the call by then.
 */
import type { AliasSettings } from '../config/settings.ts';
import type { Snapshot } from '../config/snapshot.ts';
import type { Endpoint, EndpointRequest } from '../endpoints/endpoint.ts';
import { claudeCodePrefix, matchRoute, tagsHeader, type RelayRequest } from './http/http.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import { refusalAgeMsMax } from './ports/config-store.ts';
import { openThreadId } from './state/thread-ids.ts';
import { createSummaryOpener } from './state/summary-seals.ts';
import type { Conversation } from './stored/conversation.ts';
import type { Attribution } from '../billing/ledger-row.ts';
import type { Tariff } from '../billing/tariff.ts';
import type { ChatCall, ModelName, NamedModels } from './call/call.ts';
import {
  aliasOf,
  judgeKey,
  judgeModel,
  listAllowedModels,
  findKey,
  mayStore,
  parseModelName,
  type AdmittedKey,
  type KeyRefusal,
} from './call/access.ts';
import type { CallRefusal } from './call/call-refusals.ts';
import {
  selectAliasModels,
  selectModel,
  keepOneModel,
  keepWindowChannels,
  type ServingChannels,
} from './call/serving-channels.ts';
import { estimateInput, findMedia } from '../billing/estimate/input-tokens.ts';
import { endUserOf, type ChatRequest } from '../wire/canonical-call.ts';
import { readWindow } from '../wire/service-tier.ts';
import { modelNamePattern } from '../wire/ids.ts';
import { walkMedia, type FoundMedium } from '../wire/media-walk.ts';
import { Refusal } from './http/refusal.ts';
import type { WorkBudget, Admission, Wanted } from './money/admission.ts';
import { asRecord } from '../wire/json.ts';
import { InvalidRequest, StorageNotAllowed } from '../wire/invalid-request.ts';
import { attributionOf } from './call/attribution.ts';
import { findRefusedUrl } from './call/content-urls.ts';

/** Kept by a function over its calls. */
export interface ReadDeps {
  ports: ChatPorts;
  endpoint: Endpoint;
  channels: ServingChannels;
  admission: Admission;
}

/** The caller, and the configuration that the call uses to its end. */
export interface Caller {
  key: AdmittedKey['row'];
  account: AdmittedKey['account'];
  shardCount: AdmittedKey['shardCount'];
  snapshot: Snapshot;
}

/** The requested call, checked against the key. */
interface AskedCall {
  body: unknown;
  /** The conversation it continues, unless `read` says what must still be read. */
  conversation: Conversation | undefined;
  read: EndpointRequest;
  model: ModelName;
  attribution: Attribution;
}

/** A call that passed every check of what was read for it. */
export interface CheckedCall extends AskedCall {
  call: ChatCall;
  source: CallSource;
}

/** A call that did not, with what is known of it. */
export interface RefusedCall {
  refusal: CallRefusal;
  caller?: Caller | undefined;
  asked?: AskedCall | undefined;
}

export type ReadCall = { checked: CheckedCall } | RefusedCall;

/** Facts of a call that are not in its body. */
export type CallFacts = { requestId: string } & Pick<
  ChatCall,
  'entry' | 'concurrencyGiven' | 'startedMs' | 'deadlineMs' | 'signal' | 'isRun'
> & {
    work: WorkBudget;
    /** For a background run: the tariff its call was accepted with. */
    tariff?: Tariff | undefined;
  };

/** A body, who sent it, and what else is known of its call. */
interface CallSource {
  body: unknown;
  headers: RelayRequest['headers'];
  /** For a background run, the attribution of its request. Otherwise it is read from body and headers. */
  attribution?: Attribution;
  caller: Caller;
  facts: CallFacts;
}

/**
 * Reads a client's request. Clients take some refusals as final, so those are decided again if key or configuration have changed.
 * Never rejects.
 * @param factsOf returns the facts of the call that depend on its sender
 */
export async function readCall(
  relay: ReadDeps,
  request: RelayRequest,
  factsOf: (caller: Caller) => CallFacts,
): Promise<ReadCall> {
  const { ports, endpoint } = relay;
  const key = findKey(endpoint, request.headers);
  const read = async (): Promise<ReadCall> => {
    let caller: Caller | undefined;
    try {
      const admitted = await admitCaller(ports, { endpoint, request, key });
      if ('reason' in admitted) return { refusal: admitted };
      caller = admitted;
      const facts = factsOf(caller);
      const body = await readBody(relay, request, { caller, facts });
      if ('refusal' in body) return { ...body, caller };
      return await checkCall(relay, { body: body.json, headers: request.headers, caller, facts });
    } catch (error) {
      return { refusal: { reason: 'fault', error }, caller };
    }
  };
  const first = await read();
  if ('checked' in first || !first.caller || typeof key === 'object') return first;
  const { refusal, caller: seen } = first;
  try {
    return (await hasChanged(ports, { refusal, key, seen })) ? await read() : first;
  } catch (error) {
    return { ...first, refusal: { reason: 'fault', error } };
  }
}

/** Reads the body once the account may pay, as far as that is known. Throws StoreUnavailable. */
async function readBody(
  { admission, endpoint }: ReadDeps,
  request: RelayRequest,
  { caller, facts }: { caller: Caller; facts: CallFacts },
): Promise<{ json: unknown } | { refusal: CallRefusal }> {
  const mayRepeat = request.headers['idempotency-key'] !== undefined && mayStore(caller);
  const asking = { ...caller, ...facts, mayRepeat };
  const unpaid = await admission.glance(asking);
  if (unpaid) return { refusal: { reason: 'money', refusal: unpaid } };
  let endLarge: (() => void) | undefined;
  try {
    const large = async (): Promise<void> => void (endLarge = await admission.admitLargeBody(asking));
    const counted = facts.work.readBody.bind(facts.work);
    const json = await request.json({ valuesMax: endpoint.bodyValuesMax, large, counted });
    const wanted = findWanted(json, caller);
    const refusal = wanted && (await admission.glance(asking, wanted));
    return refusal ? { refusal: { reason: 'money', refusal } } : { json };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { refusal: { reason: 'body', refusal: error } };
  } finally {
    endLarge?.();
  }
}

interface RefusalAges {
  keyMs?: number;
  configMs?: number;
}

/**
 * How old a key or a configuration may be that refuses. Whoever adds a model calls it as soon as the list has it; names that
 * callers invent so cost an environment one read a second.
 */
const refusalAges: Partial<Record<CallRefusal['reason'], RefusalAges>> = {
  model_not_found: { configMs: 1_000 },
  model_not_allowed: { keyMs: 5_000 },
  official_not_allowed: { keyMs: 5_000 },
};
/** Ages for refusals to store: another environment may have just stored the response that the request continues. */
const storageAges: RefusalAges = { keyMs: 1_000, configMs: 1_000 };

/**
 * Tells if the facts behind a refusal have changed, so that repeating the checks may help. The stores of keys and
 * configuration keep the new ones. Throws StoreUnavailable if they cannot be read.
 * @param key as the client sent it
 * @param seen what the checks have seen
 */
async function hasChanged(
  { keys, config }: ChatPorts,
  { refusal, key, seen }: { refusal: CallRefusal; key: string; seen: Caller },
): Promise<boolean> {
  const isForStorage = refusal.reason === 'invalid' && refusal.error instanceof StorageNotAllowed;
  const { keyMs, configMs } = isForStorage ? storageAges : (refusalAges[refusal.reason] ?? {});
  if (keyMs !== undefined) {
    const lookup = await keys.find(key, keyMs);
    if (!('row' in lookup) || lookup.row !== seen.key) return true;
  }
  return configMs !== undefined && (await config.notOlderThan(configMs)) !== seen.snapshot;
}

/** Reads what a body asks for, before it is checked. The checks report what is invalid. */
function findWanted(body: unknown, { key, snapshot }: Caller): Wanted | undefined {
  const { model, official } = asRecord(body);
  if (typeof model !== 'string' || !modelNamePattern.test(model)) return undefined;
  const name = parseModelName(model, official === true);
  if (!name) return undefined;
  const alias = aliasOf(snapshot, name.base);
  const models = alias ? listAllowedModels(key, alias) : [name.base];
  return { models, isAlias: alias !== undefined, official: name.official };
}

/** Checks path and method, whether the relay is closed, and the key. */
async function admitCaller(
  { config, keys, clock }: ChatPorts,
  { endpoint, request, key }: { endpoint: Endpoint; request: RelayRequest; key: string | KeyRefusal },
): Promise<Caller | CallRefusal> {
  if (matchRoute(request) !== endpoint.name) return { reason: 'route', request };
  const judging = (async () =>
    typeof key === 'object' ? key : judgeKey(await keys.find(key), clock.now()))();
  judging.catch(() => {}); // Awaited below. A refusal by the configuration takes precedence.
  let snapshot = await config.current();
  if (snapshot.settings.relayClosed) snapshot = await config.notOlderThan(refusalAgeMsMax);
  const { relayClosed, contact } = snapshot.settings;
  if (relayClosed) return { reason: 'closed', contact };
  const admitted = await judging;
  if ('reason' in admitted) return admitted;
  const { row, account, shardCount } = admitted;
  return { key: row, account, shardCount, snapshot };
}

/**
 * Checks everything that a body says. A call that refers to stored responses is checked twice: by itself, so that what is
 * wrong with it is refused before the store is asked, and with the conversation that was read for it. Never rejects.
 */
export async function checkCall(
  relay: ReadDeps,
  source: CallSource,
  conversation?: Conversation,
): Promise<ReadCall> {
  const { endpoint, channels } = relay;
  const { caller } = source;
  let asked: AskedCall | undefined;
  try {
    const parsed = await parseCall(relay, source, conversation);
    if ('reason' in parsed) return { refusal: parsed, caller };
    asked = parsed;
    const named = modelsOf(channels, source, asked);
    if ('reason' in named) return { refusal: named, caller, asked };
    const refusal = judgeLength(asked) ?? judgeContents(asked, caller);
    if (refusal) return { refusal, caller, asked };
    return { checked: { ...asked, call: callOf(endpoint, source, asked, named), source } };
  } catch (error) {
    return { refusal: { reason: 'fault', error }, caller, asked };
  }
}

/** True if an earlier turn can have a state. */
export const mayHaveStates = ({ call, read }: Pick<CheckedCall, 'call' | 'read'>): boolean =>
  read.sealed !== undefined ||
  read.foreignLeftOut === true ||
  call.request.messages.some((one) => one.tool_calls);

/** Checks schema, model name, official gate and whitelist. */
async function parseCall(
  relay: ReadDeps,
  source: CallSource,
  conversation: Conversation | undefined,
): Promise<AskedCall | CallRefusal> {
  const { body, caller, facts } = source;
  let parsed: Pick<AskedCall, 'read' | 'attribution'>;
  try {
    parsed = await parseBody(relay, source, conversation);
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    return { reason: 'invalid', error };
  }
  const { request, embedding, compacts } = parsed.read.call;
  const hours = readWindow(request.service_tier);
  if (hours !== undefined && !parsed.read.storage?.background) {
    const problem =
      "is a background window, which needs a background response: send 'background_options' with 'background': true";
    const error = new InvalidRequest('invalid_value', 'service_tier', `'service_tier' ${problem}.`);
    return { reason: 'invalid', error };
  }
  const model = parseModelName(request.model, request.official === true);
  if (!model) return { reason: 'model_name' };
  // A run keeps the rights of its acceptance: the alias that gave them may have been deleted.
  const refused = facts.tariff ? undefined : judgeModel(caller, model);
  if (refused) return refused;
  // These can't use the results of a search, so no search may be made or reserved.
  const asked = compacts ? 'A compaction' : hours && 'A call in a background window';
  const what = embedding ? 'Embeddings' : asked;
  if (model.web && what !== undefined) return { reason: 'search_not_offered', what };
  return { body, conversation, ...parsed, model };
}

/** Throws an InvalidRequest. */
async function parseBody(
  { endpoint, ports: { sealer } }: ReadDeps,
  { body, headers, caller, attribution: given, facts }: CallSource,
  conversation: Conversation | undefined,
): Promise<Pick<AskedCall, 'read' | 'attribution'>> {
  const { storing } = endpoint;
  const reading = storing && mayStore(caller) ? await storing() : undefined;
  const atHand = reading && { reading, stored: conversation };
  const reader = (endpoint.otherForm && (await endpoint.otherForm(body))) ?? endpoint;
  const opener = createSummaryOpener(sealer, caller.key.account, facts.work);
  const written = reader.read(body, headers, atHand, opener);
  const { continues } = written;
  const thread = continues === undefined ? undefined : openThreadId(sealer, caller.key.account, continues);
  const read = { ...written, call: { ...written.call, thread, media: [...findMedia(written.call)] } };
  const attribution = given ?? findAttribution(read.call.request, headers);
  return { read, attribution };
}

const saysWhom = (header: string): boolean => header === tagsHeader || header.startsWith(claudeCodePrefix);

function findAttribution(request: ChatRequest, headers: RelayRequest['headers']): Attribution {
  if (endUserOf(request) === undefined && !Object.keys(headers).some(saysWhom)) return {};
  return attributionOf(request, headers);
}

type Named = NamedModels & Pick<ChatCall, 'tariff'>;

/** Finds the models that may answer, each with its channels, and their tariff. */
function modelsOf(
  serving: ServingChannels,
  { caller: { key, snapshot, account }, facts: { startedMs, tariff: agreed } }: CallSource,
  { model: name, read }: AskedCall,
): Named | CallRefusal {
  const { request, embedding, form } = read.call;
  const call = { snapshot, startedMs, account, tariff: agreed };
  const find = (model: string): ReturnType<ServingChannels['find']> => serving.find(call, model);
  const current = aliasOf(snapshot, name.base);
  const alias = agreed ? restoreAlias(name.base, agreed, current) : current;
  const allowed = alias && (agreed ? alias.models : listAllowedModels(key, alias));
  const named =
    alias && allowed
      ? selectAliasModels({ alias, name, allowed, request }, find)
      : selectModel(name, find(name.base), request);
  if ('reason' in named) return named;
  const models = named.alias?.models.map(({ model }) => model) ?? [name.base];
  const tariff = agreed ?? serving.tariffOf(call, { models, web: name.web });
  const isWindowed = readWindow(request.service_tier) !== undefined;
  const windowed = isWindowed ? keepWindowChannels(named, tariff, request) : named;
  const kept = embedding ? keepOneModel(named, form) : windowed;
  return 'reason' in kept ? kept : { ...kept, tariff };
}

/**
 * Restores the alias of a background run with its models at acceptance, all of which are in the tariff, so that an edit takes no model from
 * a waiting call. A name that was not an alias then stays one model.
 */
function restoreAlias(
  name: string,
  { prices }: Tariff,
  current: AliasSettings | undefined,
): AliasSettings | undefined {
  if (prices.has(name)) return undefined;
  return { name, models: [...prices.keys()], onContextLength: current?.onContextLength ?? false };
}

/** Before anything is reserved or sent: the vendors that refuse so much have read it by then. */
function judgeLength({ read: { call, inputTokensMax: most } }: AskedCall): CallRefusal | undefined {
  const fits = most === undefined || estimateInput(call).below <= most;
  return fits ? undefined : { reason: 'input_too_long', most };
}

/** Checks the URLs of a request that holds media, before anything is reserved: upstreams fetch them. */
function judgeContents({ read }: AskedCall, { snapshot }: Caller): CallRefusal | undefined {
  return read.call.media?.length === 0 ? undefined : findRefusedUrl(listMedia(read), snapshot.settings);
}

/** At the paths of the client's own body. */
function* listMedia({ call, placed }: EndpointRequest): Generator<FoundMedium, void, undefined> {
  if (!placed) yield* findMedia(call);
  for (const { item, param } of placed ?? []) yield* walkMedia(item, param);
  if (placed) yield* walkMedia(call.unknown);
}

function callOf(
  { name }: Endpoint,
  { caller, facts }: CallSource,
  { read, attribution }: AskedCall,
  named: Named,
): ChatCall {
  const { requestId, work: _work, ...own } = facts;
  const created = Math.floor(facts.startedMs / 1000);
  return Object.freeze({
    ...caller,
    ...own,
    endpoint: name,
    identity: Object.freeze({ requestId, created, model: named.model.base }),
    ...read.call,
    attribution,
    states: Object.freeze(new Map()),
    stateDropped: false,
    ...named,
    outputTokensAsked: read.outputTokensMax,
    droppedTools: read.droppedTools,
  });
}
