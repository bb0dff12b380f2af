/**
 * Calls one candidate and returns its answer as a canonical stream with a report. The report is valid however
 * the stream ended, because an interrupted answer is billed by the usage it reported.
 */
import { openBodyEvents } from '../../upstreams/body-events.ts';
import { type AnswerReader, type Dialect } from '../../upstreams/dialect.ts';
import { CallIds } from '../../upstreams/call-ids.ts';
import { hostOf } from '../../upstreams/endpoint-rules.ts';
import { type UpstreamReply, ErrorInAnswer, UpstreamFailure } from '../../upstreams/exchange.ts';
import type { StateOrigin, StatePart, TurnState } from '../../wire/turn-state.ts';
import { loadDialect } from '../../upstreams/dialects/dialects.ts';
import { run } from '../../stream/machine.ts';
import { type ChatChunk, hasContent } from '../../wire/chat-response.ts';
import {
  buildRequest,
  dialectOf,
  endUserFieldOf,
  quirksOf,
  upstreamModelOf,
  type BuiltRequest,
} from '../../upstreams/called-channel.ts';
import { channelTypes } from '../../upstreams/types/channel-types.ts';
import { customerProfileOf } from '../../config/rows/account-row.ts';
import type { ChatCall, AttemptReport, TriedCandidate, Candidate } from '../call/call.ts';
import { findModelLimits, findServiceTiers } from '../../billing/tariff.ts';
import { computeDefaultOutputTokens } from '../call/serving-channels.ts';
import { endUserOf } from '../../wire/canonical-call.ts';
import { resolveTier, type ServiceTiers } from '../../wire/service-tier.ts';
import { asRecord, isRecord, type JsonRecord } from '../../wire/json.ts';
import { fingerprint, hopHeader } from '../../wire/ids.ts';
import type { Quirks, WordKind } from '../../upstreams/quirks.ts';
import { SecretUnusable } from '../ports/config-store.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { Pseudonym } from '../ports/host.ts';
import type { RefusedAttempt, Repeated, Variant } from './refused-attempt.ts';
import { timeLimits, startWatchdog, type Watchdog } from './time-limits.ts';

/** Reads what an upstream refused: 22 KB that no answered call needs. */
export const loadRefusals = () => import('./refused-attempt.ts');

const megabyte = 1024 * 1024;
const bodyLimits = {
  answerBytesMax: 64 * megabyte,
  documentBytesMax: 16 * megabyte,
  lineLengthMax: 8 * megabyte,
};

interface Prepared {
  dialect: Dialect;
  built: BuiltRequest;
}

interface AttemptInput {
  candidate: Candidate;
  call: ChatCall;
  variant?: Variant;
  /** Replaces the candidate's dialect. May throw CannotCarry. */
  speaking?: (dialect: Dialect) => Dialect;
  /** Called with words of the upstream that the vocabulary lacks. */
  noteWord?: (kind: WordKind, word: string) => void;
}

export interface Tried extends TriedCandidate {
  attempt: Attempt;
}

export class Attempt {
  /**
   * Can be read once. Throws a Refusal when the caller's request is at fault, CannotCarry when this upstream cannot be
   * sent the call, AskAgain when it wants another form, otherwise an UpstreamFailure.
   * All its work stops when it ends, throws or is returned early.
   */
  readonly chunks: AsyncGenerator<ChatChunk[], void, undefined>;
  readonly #ports: ChatPorts;
  readonly #candidate: Candidate;
  readonly #call: ChatCall;
  readonly #variant: Variant;
  readonly #speaking: (dialect: Dialect) => Dialect;
  readonly #noteWord: AttemptInput['noteWord'];
  readonly #callIds: CallIds;
  readonly #serviceTiers: ServiceTiers;
  /** The ids of the first choice's tool calls as the client sees them, by index. */
  readonly #shownIds: (string | undefined)[] = [];
  #reader: AnswerReader | undefined;
  #prepared: Promise<Prepared> | undefined;
  #built: BuiltRequest | undefined;
  #origin: StateOrigin | undefined;
  #stateDropped = false;
  #clientsItems: Map<unknown, string | undefined> | undefined;
  #hasContent = false;
  #upstreamStatus: number | undefined;

  /** Throws NotInTariff. */
  constructor(
    ports: ChatPorts,
    { candidate, call, variant = usualVariant, speaking = (dialect) => dialect, noteWord }: AttemptInput,
  ) {
    this.#ports = ports;
    this.#candidate = candidate;
    this.#call = call;
    this.#variant = variant;
    this.#speaking = speaking;
    this.#noteWord = noteWord;
    this.#callIds = new CallIds({ channel: candidate.channel.id, requestId: call.identity.requestId });
    this.#serviceTiers = findServiceTiers(call.tariff, candidate.model);
    this.chunks = this.#read();
  }

  /** Valid at any time: during the stream and after every kind of end. */
  report(): AttemptReport {
    const {
      usage,
      serviceTier: told,
      state,
      stopSequence: stoppedAt,
      inputTransformations: vendors,
    } = this.#reader?.report() ?? {};
    const {
      dropped = [],
      unsentMedia,
      effort,
      toolChoice,
      isMultiplied,
      isNative,
      holdsThread,
      stop,
    } = this.#built?.sent ?? {};
    const named = this.#stateDropped ? [...new Set([...dropped, 'reasoning'])] : dropped;
    const outputTokensMax = this.#built && (this.#built.sent.outputTokensMax ?? null);
    const inputTransformations = vendors?.map((one) =>
      Object.assign({}, one, { id: (this.#clientsItems ??= clientsItems(this.#call)).get(one.id) }),
    );
    const sent = {
      dropped: named,
      unsentMedia,
      effort,
      toolChoice,
      outputTokensMax,
      isMultiplied,
      isNative,
      holdsThread,
      serviceTier: resolveTier(this.#serviceTiers, this.#built?.sent.serviceTier, told),
      reportedTier: told,
      stop,
      stoppedAt,
      inputTransformations,
    };
    return {
      upstreamStatus: this.#upstreamStatus,
      usage,
      sent,
      state: this.#turn(state),
      origin: this.#origin,
    };
  }

  /** Builds the request, once, and sends nothing. Throws CannotCarry, or the UpstreamFailure of the secret. */
  prepare(): Promise<Prepared> {
    const { channel, model } = this.#candidate;
    const name = this.#variant.dialect ?? dialectOf(channel, model, this.#call.form);
    return (this.#prepared ??= loadDialect(name).then(async (loaded) => {
      const dialect = this.#speaking(loaded);
      return { dialect, built: this.#build(dialect, await this.#readSecret()) };
    }));
  }

  async *#read(): AsyncGenerator<ChatChunk[], void, undefined> {
    const prepared = await this.prepare();
    const { dialect, built } = prepared;
    const { sent, quirks, request } = built;
    this.#built = built;
    const limits = timeLimits(this.#candidate.channel, this.#call, request.body.length);
    const watchdog = startWatchdog(this.#ports.clock, limits, this.#call.signal);
    try {
      const reply = await this.#send(prepared, watchdog);
      const { identity } = this.#call;
      const noteUnknownWord = (word: string): void => this.#noteUnknownWord('finish', word, built);
      const reader = new dialect.Reader({ identity, sent, quirks, callIds: this.#callIds, noteUnknownWord });
      this.#reader = reader;
      const body = await openBodyEvents(bodyLimits, reply.headers['content-type'], dialect.hasLongLists);
      const events = run(this.#reply(reply, reader, watchdog), body);
      for await (const batch of run(events, reader)) {
        if (batch.some(hasContent)) {
          watchdog.content();
          this.#hasContent = true;
        }
        this.#noteIds(batch);
        yield batch;
      }
    } catch (error) {
      if (error instanceof ErrorInAnswer) {
        const { readAnswerError } = await loadRefusals();
        throw toError(readAnswerError(error.error, this.#describeRefused(prepared)));
      }
      throw watchdog.failure() ?? UpstreamFailure.from(error) ?? error;
    } finally {
      watchdog.stop();
    }
  }

  /** Sends the call. Throws unless the reply is a 2xx. */
  async #send(prepared: Prepared, watchdog: Watchdog): Promise<UpstreamReply> {
    const { entry } = this.#call;
    const { request } = prepared.built;
    // Refused here where the address shows the loop, else by the hop header, one invocation later.
    if (entry && URL.parse(request.url)?.host === entry.host) throw new UpstreamFailure('loop');
    const headers = entry ? { ...request.headers, [hopHeader]: entry.hops } : request.headers;
    const reply = await this.#ports.transport.send({ ...request, headers }, watchdog.signal);
    this.#upstreamStatus = reply.status;
    watchdog.read();
    if (reply.status >= 200 && reply.status <= 299) return reply;
    const { readReplyError } = await loadRefusals();
    const refused = { ...this.#describeRefused(prepared), clock: this.#ports.clock };
    throw toError(await readReplyError(reply, refused));
  }

  /** Throws CannotCarry. */
  #build(dialect: Dialect, secret: string | undefined): BuiltRequest {
    const { channel, model } = this.#candidate;
    const { outputTokensLimit } = this.#call;
    const { without, quirks: learned, refusedLimit, refusedFeatures, limitMost = Infinity } = this.#variant;
    const most = Math.min(outputTokensLimit ?? Infinity, limitMost);
    const { wantsBack } = { ...quirksOf(channel, model), ...learned };
    const fitting = selectStates(this.#candidate, { dialect: dialect.name, wantsBack }, this.#call);
    this.#stateDropped = fitting.dropped;
    this.#origin = originOf(this.#candidate, {
      dialect: dialect.name,
      model: upstreamModelOf(channel, model),
    });
    return buildRequest(channel, {
      dialect,
      call: pseudonymizeCall(this.#call, this.#ports.pseudonym, endUserFieldOf(channel)),
      model,
      secret,
      outputTokensLimit: Number.isFinite(most) ? most : undefined,
      outputTokensDefault: computeDefaultOutputTokens(this.#call),
      refusedLimit,
      profile: customerProfileOf(this.#call.account),
      threadId: this.#findThreadId(this.#origin),
      states: fitting.states,
      foreignTurns: fitting.foreign,
      dropsForeign: this.#call.candidates.length > 1,
      callIds: this.#callIds,
      omissions: without,
      refusedFeatures,
      unpricedHour: findModelLimits(this.#call.tariff, model).unpricedHour,
      serviceTiers: this.#serviceTiers,
      learned,
    });
  }

  #findThreadId({ dialect }: StateOrigin): string | undefined {
    const { thread } = this.#call;
    const isHere = thread?.origin.dialect === dialect && isOrigin(this.#candidate, thread.origin);
    return isHere ? thread.id : undefined;
  }

  /** Hides a word that quotes the secret: operators who may not read secrets see these words in the row's warning. */
  #noteUnknownWord(kind: WordKind, word: string, { known }: BuiltRequest): void {
    this.#noteWord?.(kind, quotesSecret(word, known.secret) ? '' : word);
  }

  #describeRefused({ dialect, built }: Prepared): RefusedAttempt {
    const { request, limitedBy, outputTokensAsked } = this.#call;
    const asked = request.max_completion_tokens ?? request.max_tokens ?? outputTokensAsked;
    return {
      built,
      type: channelTypes[this.#candidate.channel.type],
      noteUnknownWord: (word) => this.#noteUnknownWord('error', word, built),
      variant: this.#variant,
      dialectName: dialect.name,
      hadContent: this.#hasContent,
      hadTools: (request.tools?.length ?? 0) > 0,
      limitLowered: limitedBy !== undefined,
      isLimitAdded: limitedBy !== undefined || asked === undefined,
    };
  }

  /** Reads a 2xx reply up to its end mark. */
  async *#reply(
    reply: UpstreamReply,
    reader: AnswerReader,
    watchdog: Watchdog,
  ): AsyncGenerator<Uint8Array[], void, undefined> {
    const choices = this.#call.request.n ?? 1;
    for await (const bytes of reply.body) {
      watchdog.noteHandOver();
      yield [bytes];
      watchdog.read();
      if (reader.done) return;
      if (reader.finishedChoices >= choices) watchdog.finished();
    }
  }

  #turn(parts: readonly StatePart[] | undefined): TurnState | undefined {
    const callIds = Array.from(this.#shownIds, (id) => id ?? '');
    return parts && this.#origin && { origin: this.#origin, callIds, parts };
  }

  #noteIds(batch: readonly ChatChunk[]): void {
    for (const { choices } of batch)
      for (const { index: choice, delta } of choices)
        for (const { index, id } of (choice === 0 && delta.tool_calls) || [])
          if (id !== undefined) this.#shownIds[index] ??= id;
  }

  async #readSecret(): Promise<string | undefined> {
    const { channel, secret } = this.#candidate;
    if (secret === undefined) return undefined;
    const { promise: deadline, reject } = Promise.withResolvers<never>();
    const abort = (): void => reject(new UpstreamFailure('deadline'));
    this.#call.signal.addEventListener('abort', abort);
    try {
      return await Promise.race([this.#ports.secrets.read(secret, hostOf(channel.endpoint)), deadline]);
    } catch (error) {
      if (error instanceof UpstreamFailure) throw error;
      throw new UpstreamFailure(error instanceof SecretUnusable ? 'secret' : 'secret_store');
    } finally {
      this.#call.signal.removeEventListener('abort', abort);
    }
  }
}

/** The fields in which clients name an end user or a cache: OpenAI's, those of DeepSeek and Z.ai, and OpenRouter's. */
const endUserFields = ['user', 'safety_identifier', 'prompt_cache_key', 'user_id', 'session_id'];

/**
 * The call as upstreams get it: the names by which clients tell end users and caches apart are bound to the account. Vendors
 * see one organisation behind a channel, whoever calls: under a name as the client wrote it, one account would be served
 * from another's cache, and could have the vendor block another's users. Echoes show the client's own name. Where a client names
 * nobody, the account is the end user, so that a vendor which blocks one blocks that account and not the organisation.
 * @param field in which the vendor wants to be told; undefined: it does not
 */
function pseudonymizeCall(
  call: ChatCall,
  pseudonym: Pseudonym,
  field: 'user' | 'safety_identifier' | undefined,
): ChatCall {
  const { key, unknown, snapshot } = call;
  const isUnnamed = field !== undefined && endUserOf(call.request) === undefined;
  // No name that a client sends is empty, so this one is nobody else's.
  const account =
    isUnnamed && snapshot.settings.endUsers.hashAccounts
      ? { [field]: pseudonym(key.account, '') }
      : undefined;
  const pseudonymize = (name: unknown): unknown =>
    name === undefined || name === null || name === ''
      ? name
      : pseudonym(key.account, typeof name === 'string' ? name : JSON.stringify(name));
  return {
    ...call,
    request: { ...replaceEndUserNames(call.request, pseudonymize), ...account },
    unknown: replaceEndUserNames(unknown, pseudonymize),
  };
}

function replaceEndUserNames<Fields extends JsonRecord>(
  fields: Fields,
  told: (name: unknown) => unknown,
): Fields {
  const { metadata } = fields;
  const named = endUserFields.filter((field) => Object.hasOwn(fields, field));
  const inMetadata = isRecord(metadata) && Object.hasOwn(metadata, 'user_id');
  if (named.length === 0 && !inMetadata) return fields;
  return {
    ...fields,
    ...Object.fromEntries(named.map((field) => [field, told(fields[field])])),
    ...(inMetadata && { metadata: { ...metadata, user_id: told(metadata['user_id']) } }),
  };
}

// The forms in which one candidate is asked: the usual one, and repeats of a refused request.

export const usualVariant: Variant = { without: new Set(), quirks: {} };

/** The same candidate is to be asked again. Nothing of the refused answer was passed on. */
export class AskAgain extends Error {
  override readonly name = 'AskAgain';
  readonly variant: Variant;
  readonly refusal: Error;

  constructor({ variant, refusal }: Repeated) {
    super('the same candidate is asked again');
    this.variant = variant;
    this.refusal = refusal;
  }
}

const toError = (refused: Error | Repeated): Error =>
  refused instanceof Error ? refused : new AskAgain(refused);

// Decides which states of earlier turns go to which candidate.

/** The origin of state in a candidate's answers. `model` is the upstream's name. */
const originOf = (
  { channel, secret }: Pick<Candidate, 'channel' | 'secret'>,
  { dialect, model }: Pick<StateOrigin, 'dialect' | 'model'>,
): StateOrigin => ({ dialect, channel: channel.id, secret: hashSecretReference(secret), model });

/** The reference is marked, not the secret: a secret that is replaced in its store may stay with its organisation. */
const hashSecretReference = (secret: string | undefined): string =>
  secret === undefined ? '' : fingerprint(secret);

/** The upstream's model is compared too, because the row may map the model to another one since. */
export const isOrigin = (
  { channel, secret, model }: Pick<Candidate, 'channel' | 'secret' | 'model'>,
  origin: Pick<StateOrigin, 'channel' | 'secret' | 'model'>,
): boolean =>
  channel.id === origin.channel &&
  hashSecretReference(secret) === origin.secret &&
  upstreamModelOf(channel, model) === origin.model;

export function findNewestOrigin({
  states,
  request,
  thread,
}: Pick<ChatCall, 'states' | 'request' | 'thread'>): StateOrigin | undefined {
  if (thread) return thread.origin;
  if (states.size === 0) return undefined;
  const newest = request.messages.findLast((message) => states.has(message));
  return newest && states.get(newest)?.origin;
}

/** The client's ids of the items that hold the vendor's, by the vendor's ids. */
const clientsItems = ({ states }: Pick<ChatCall, 'states'>): Map<unknown, string | undefined> =>
  new Map(
    [...states.values()].flatMap(({ parts, item }) =>
      parts.flatMap((part) => {
        const { id } = 'opaque' in part ? asRecord(part.opaque['item']) : {};
        return id === undefined ? [] : [[id, item] as const];
      }),
    ),
  );

/** The states that may go to a candidate that speaks `dialect`. `foreign`: the turns whose state may not. */
function selectStates(
  candidate: Pick<Candidate, 'channel' | 'secret' | 'model'>,
  { dialect, wantsBack }: { dialect: string } & Pick<Quirks, 'wantsBack'>,
  call: Pick<ChatCall, 'states' | 'stateDropped'>,
) {
  const isFitting = ({ origin, parts }: TurnState): boolean =>
    origin.dialect === dialect && (isOrigin(candidate, origin) || isPlain(parts, wantsBack));
  const fitting = [...call.states].filter(([, state]) => isFitting(state));
  return {
    foreign: new Set([...call.states].filter(([, state]) => !isFitting(state)).map(([message]) => message)),
    states: new Map(fitting.map(([message, { parts }]) => [message, parts])),
    dropped: call.stateDropped || fitting.length < call.states.size,
  };
}

const lettersOf = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

/** An upstream may shorten a key. Fewer letters of it may stand in an ordinary word. */
const quotedLettersMin = 8;

/** True if the word contains a part of the secret, whatever its case and punctuation. */
function quotesSecret(word: string, secret = ''): boolean {
  const [said, letters] = [lettersOf(word), lettersOf(secret)];
  const parts = Array.from({ length: Math.max(1, letters.length - quotedLettersMin + 1) }, (_, at) =>
    letters.slice(at, at + quotedLettersMin),
  );
  return letters !== '' && parts.some((part) => said.includes(part));
}

/** Reasoning as plain text is bound to no organisation, so every upstream that wants such text back may have it. */
const isPlain = (parts: readonly StatePart[], wantsBack: Quirks['wantsBack']): boolean =>
  wantsBack === 'reasoning_content' &&
  parts.every((part) => !('opaque' in part) || Object.keys(part.opaque).join() === wantsBack);
