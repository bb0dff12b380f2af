/**
 * Reads a call: path, key, body, model, whitelist, candidates and contents, in this order. All checks read one
 * snapshot; a refusal that clients take as final is decided once more where key or configuration have changed (`refusalAges`). It
 * comes back as a value, with what was known of the call by then.
 */
import type { Snapshot } from '../config/snapshot.ts';
import type { Endpoint, EndpointRequest } from '../endpoints/endpoint.ts';
import { claudeCodePrefix, matchRoute, tagsHeader, type RelayRequest } from './http/http.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import { refusalAgeMsMax } from './ports/config-store.ts';
import { createSummaryOpener } from './state/summary-seals.ts';
import type { Conversation } from './stored/conversation.ts';
import type { Attribution } from '../billing/ledger-row.ts';
import { NotInTariff, type Tariff } from '../billing/tariff.ts';
import type { ChatCall, ModelName, NamedModels } from './call/call.ts';
import {
  admitKey,
  admitModel,
  aliasOf,
  listAllowedModels,
  findKey,
  mayStore,
  parseModelName,
  type AdmittedKey,
} from './call/access.ts';
import {
  selectCapable,
  selectAliasModels,
  keepOneModel,
  type ServingChannels,
} from './call/serving-channels.ts';
import { estimateInput, findMedia } from '../billing/estimate/input-tokens.ts';
import { endUserOf, type ChatRequest } from '../wire/canonical-call.ts';
import { modelNamePattern } from '../wire/ids.ts';
import { walkMedia, type MediaPlace } from '../wire/media-walk.ts';
import { refuse, Refusal } from './http/refusal.ts';
import type { WorkBudget } from './call/work-budget.ts';
import type { Admission, Wanted } from './money/admission.ts';
import { asRecord } from '../wire/json.ts';
import { InvalidRequest, StorageNotAllowed } from '../wire/invalid-request.ts';
import { attributionOf } from './call/attribution.ts';
import { checkContentUrls } from './call/content-urls.ts';

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
  parts: AdmittedKey['parts'];
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
  error: unknown;
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
 * Reads a request of a client. Clients take some refusals as final, so what these were decided from is looked at once more.
 * @param factsOf what of the call depends on who sent it
 */
export async function readCall(
  relay: ReadDeps,
  request: RelayRequest,
  factsOf: (caller: Caller) => CallFacts,
): Promise<ReadCall> {
  const { ports, endpoint, admission } = relay;
  const { headers } = request;
  const reading = async (): Promise<ReadCall> => {
    let caller: Caller | undefined;
    let endLarge: (() => void) | undefined;
    try {
      caller = await admitCaller(ports, endpoint, request);
      const facts = factsOf(caller);
      const mayRepeat = headers['idempotency-key'] !== undefined && mayStore(caller);
      const asking = { ...caller, ...facts, mayRepeat };
      await admission.glance(asking);
      const large = async (): Promise<void> => void (endLarge = await admission.admitLargeBody(asking));
      const counted = facts.work.readBody.bind(facts.work);
      const body = await request.json({ valuesMax: endpoint.bodyValuesMax, large, counted });
      const wanted = findWanted(body, caller);
      if (wanted) await admission.glance(asking, wanted);
      return await checkCall(relay, { body, headers, caller, facts });
    } catch (error) {
      return { error, caller };
    } finally {
      endLarge?.();
    }
  };
  const first = await reading();
  if (!('error' in first) || !first.caller) return first;
  try {
    const { error, caller: seen } = first;
    return (await hasChanged(ports, { error, key: findKey(endpoint, headers), seen }))
      ? await reading()
      : first;
  } catch (error) {
    return { ...first, error };
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
const refusalAges: Record<string, RefusalAges> = {
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
  { error, key, seen }: { error: unknown; key: string; seen: Caller },
): Promise<boolean> {
  const ofRefusal = error instanceof Refusal ? refusalAges[error.body.error.code ?? ''] : undefined;
  const { keyMs, configMs } = error instanceof StorageNotAllowed ? storageAges : (ofRefusal ?? {});
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
  const alias = aliasOf(snapshot, name.base);
  const models = alias ? listAllowedModels(key, alias) : [name.base];
  return { models, isAlias: alias !== undefined, official: name.official };
}

/** Checks path and method, whether the relay is closed, and the key. */
async function admitCaller(ports: ChatPorts, endpoint: Endpoint, request: RelayRequest): Promise<Caller> {
  if (matchRoute(request) !== endpoint.name) {
    throw (await import('./http/refuse-route.ts')).refuseRoute(request);
  }
  const { config, keys, clock } = ports;
  const keyLookup = (async () => keys.find(findKey(endpoint, request.headers)))();
  keyLookup.catch(() => {}); // Awaited below. A refusal by the configuration takes precedence.
  let snapshot = await config.current();
  if (snapshot.settings.relayClosed) snapshot = await config.notOlderThan(refusalAgeMsMax);
  if (snapshot.settings.relayClosed) throw refuseClosed(snapshot);
  const { row, account, parts } = admitKey(await keyLookup, clock.now());
  return { key: row, account, parts, snapshot };
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
    asked = await parseCall(relay, source, conversation);
    const named = modelsOf(channels, source, asked);
    checkLength(asked);
    await checkContents(asked, caller);
    const call = callOf(endpoint, source, asked, named);
    return { checked: { ...asked, call, source } };
  } catch (error) {
    return { error, caller, asked };
  }
}

/** True if an earlier turn can have a state. */
export const mayHaveStates = ({ call, read }: Pick<CheckedCall, 'call' | 'read'>): boolean =>
  read.sealed !== undefined ||
  read.foreignLeftOut === true ||
  call.request.messages.some((one) => one.tool_calls);

/** Checks schema, model name, official gate and whitelist. */
async function parseCall(
  { endpoint, ports: { sealer } }: ReadDeps,
  { body, headers, caller, attribution: given, facts }: CallSource,
  conversation: Conversation | undefined,
): Promise<AskedCall> {
  const { storing } = endpoint;
  const reading = storing && mayStore(caller) ? await storing() : undefined;
  const atHand = reading && { reading, stored: conversation };
  const reader = (endpoint.otherForm && (await endpoint.otherForm(body))) ?? endpoint;
  const written = reader.read(
    body,
    headers,
    atHand,
    createSummaryOpener(sealer, caller.key.account, facts.work),
  );
  const read = { ...written, call: { ...written.call, media: [...findMedia(written.call)] } };
  const { request } = read.call;
  const { model: requested, official } = request;
  const attribution = given ?? (await findAttribution(request, headers));
  const model = parseModelName(requested, official === true);
  admitModel(caller, model);
  if (model.web) checkSearchable(read);
  return { body, conversation, read, model, attribution };
}

/** Nothing reads the results of a search for these, so none may be made or held for. */
function checkSearchable({ call: { embedding, compacts } }: EndpointRequest): void {
  const what = embedding ? 'Embeddings' : compacts ? 'A compaction' : undefined;
  if (what !== undefined)
    throw new InvalidRequest(
      'invalid_value',
      'model',
      `${what} can't use web search. Drop the prefix "web-" from the model's name.`,
    );
}

const saysWhom = (header: string): boolean => header === tagsHeader || header.startsWith(claudeCodePrefix);

/** Throws an InvalidRequest. */
async function findAttribution(request: ChatRequest, headers: RelayRequest['headers']): Promise<Attribution> {
  if (endUserOf(request) === undefined && !Object.keys(headers).some(saysWhom)) return {};
  return attributionOf(request, headers);
}

/**
 * The models that may answer, each with its channels, and their tariff. Throws a Refusal or an InvalidRequest when there are
 * none, NotInTariff when the tariff of a run covers none of them.
 */
function modelsOf(
  serving: ServingChannels,
  { caller: { key, snapshot }, facts: { startedMs, tariff: agreed } }: CallSource,
  { model: name, read }: AskedCall,
): NamedModels & Pick<ChatCall, 'tariff'> {
  const { request, embedding, form } = read.call;
  const call = { snapshot, startedMs, tariff: agreed };
  const alias = aliasOf(snapshot, name.base);
  const allowed = alias ? listAllowedModels(key, alias) : [name.base];
  const covered = agreed ? allowed.filter((model) => agreed.prices.has(model)) : allowed;
  if (covered.length === 0) throw new NotInTariff(`the tariff of the call does not cover ${name.base}`);
  const named: NamedModels = alias
    ? selectAliasModels({ alias, name, allowed: covered, request }, (model) => serving.find(call, model))
    : {
        model: Object.freeze(name),
        ...selectCapable(serving.findOrRefuse(call, name.base), { model: name.base, request }),
      };
  const models = named.alias?.models.map(({ model }) => model) ?? [name.base];
  const tariff = agreed ?? serving.tariffOf(call, { models, web: name.web });
  return { ...(embedding ? keepOneModel(named, form) : named), tariff };
}

/** Before anything is reserved or sent: the vendors that refuse so much have read it by then. */
function checkLength({ read: { call, inputTokensMax: most } }: AskedCall): void {
  if (most === undefined || estimateInput(call).below <= most) return;
  const words = `The input has more than ${most} tokens, which is the most of one request. Send fewer inputs a request.`;
  throw new InvalidRequest('max_tokens_per_request', 'input', words);
}

/** Checks the URLs of a request that holds media, before anything is reserved: upstreams fetch them. */
async function checkContents({ read }: AskedCall, { snapshot }: Caller): Promise<void> {
  if (read.call.media?.length === 0) return;
  checkContentUrls(listMedia(read), snapshot.settings);
}

/** At the paths of the client's own body. */
function* listMedia({ call, placed }: EndpointRequest): Generator<MediaPlace, void, undefined> {
  if (!placed) yield* findMedia(call);
  for (const { item, param } of placed ?? []) yield* walkMedia(item, param);
  if (placed) yield* walkMedia(call.unknown);
}

function callOf(
  { name }: Endpoint,
  { caller, facts }: CallSource,
  { read, attribution }: AskedCall,
  named: NamedModels & Pick<ChatCall, 'tariff'>,
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

function refuseClosed({ settings: { contact } }: Snapshot): Refusal {
  const more = contact === '' ? '' : ` Contact: ${contact}`;
  return refuse('relay_closed', `The relay is closed at the moment.${more}`);
}
