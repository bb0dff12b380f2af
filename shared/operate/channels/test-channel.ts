/**
 * Sends one small chat request to a channel, built and addressed as by the relay. The upstream charges for
 * it; no row is written.
 */
import { loadDialect } from '../../upstreams/dialects/dialects.ts';
import { CallIds } from '../../upstreams/call-ids.ts';
import type { Dialect, ReaderContext } from '../../upstreams/dialect.ts';
import {
  type UpstreamRequest,
  TransportError,
  type UpstreamReply,
  ErrorInAnswer,
  UpstreamFailure,
} from '../../upstreams/exchange.ts';
import { dialectOf, upstreamModel } from '../../upstreams/types/channel-quirks.ts';
import { channelRequest } from '../../upstreams/types/channel-request.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { type Plan, Failure } from '../plan.ts';
import { channelSecret, findChannel, refuseRoleSigned, servedModel } from './list-channels.ts';
import { BodyEvents } from '../../upstreams/body-events.ts';
import { isRecord } from '../../wire/json.ts';
import type { ChatChunk } from '../../wire/chat-response.ts';

export interface TestInput {
  id: string;
  /** Public name; absent: the channel's first model. */
  model?: string;
  /** See `channelSecret`. */
  secretEnv?: string;
}

interface ChannelTestPlan extends Plan<Pick<UpstreamRequest, 'url'>> {
  /** The relay's warnings about the row. */
  warnings: string[];
  /** The request to send. It contains the secret, so it must not be shown. */
  call: {
    request: UpstreamRequest;
    secret: string | undefined;
    timeoutMs: number;
    dialect: Dialect;
    context: ReaderContext;
  };
}

export interface ChannelTest {
  status: number;
  elapsedMs: number;
  /** Undefined: the response is no answer in the channel's dialect. */
  answer: ReplyText | undefined;
  /** The beginning of the response body, without the secret. */
  body: string;
}

const tokensMax = 64;

export async function planChannelTest(
  ports: Pick<OperatorPorts, 'secrets' | 'tables' | 'target'>,
  { id, model: wanted, secretEnv }: TestInput,
): Promise<ChannelTestPlan> {
  const { channel, warnings } = await findChannel(ports, id);
  const model = servedModel(channel, wanted);
  refuseRoleSigned(channel);
  const secret = await channelSecret(ports, channel, secretEnv);
  const messages = [{ role: 'user' as const, content: 'Answer with the one word: ready' }];
  const dialect = await loadDialect(dialectOf(channel, model));
  const callIds = new CallIds({ channel: id, requestId: '' });
  const { request, sent, quirks } = channelRequest(channel, {
    dialect,
    call: { form: '', request: { model, messages }, unknown: {} },
    model,
    secret,
    outputTokensLimit: tokensMax,
    outputTokensDefault: tokensMax,
    states: new Map(),
    callIds,
    without: new Set(),
  });
  return {
    changes: [{ url: request.url }],
    effect: [`POST ${request.url}, model ${upstreamModel(channel, model)}`],
    questions: [],
    warnings,
    call: {
      request,
      secret,
      timeoutMs: channel.total_seconds * 1000,
      dialect,
      context: { identity: { requestId: '', created: 0, model }, sent, callIds, quirks },
    },
  };
}

/** Throws a Failure if the upstream does not respond. */
export async function carryOutChannelTest(
  ports: Pick<OperatorPorts, 'clock' | 'upstreams'>,
  { call: { request, secret, timeoutMs, dialect, context } }: ChannelTestPlan,
): Promise<ChannelTest> {
  const startMs = ports.clock.now();
  const reply = await callUpstream(ports, request, { secret, timeoutMs });
  const answer = reply.ok ? replyText(reply.body, dialect, context) : undefined;
  return {
    status: reply.status,
    elapsedMs: ports.clock.now() - startMs,
    answer: answer && {
      ...answer,
      model: cleanText(answer.model, secret),
      text: cleanText(answer.text, secret),
    },
    body: cleanText(reply.body, secret),
  };
}

// Sends one request to an upstream and reads the whole response. Text from `cleanText` is safe to show.

const shownCharactersMax = 300;
/** The longest lists of models have some megabytes. What comes after this is not read. */
const bodyCharactersMax = 16 * 1024 * 1024;

export interface UpstreamAnswer {
  status: number;
  ok: boolean;
  /** The whole body, or the part that was received. */
  body: string;
}

/** Throws a Failure if the upstream does not respond. */
export async function callUpstream(
  { clock, upstreams }: Pick<OperatorPorts, 'clock' | 'upstreams'>,
  request: UpstreamRequest,
  { secret, timeoutMs }: { secret: string | undefined; timeoutMs: number },
): Promise<UpstreamAnswer> {
  const deadline = new AbortController();
  const finished = new AbortController();
  void clock.sleep(timeoutMs, finished.signal).then(() => {
    if (!finished.signal.aborted) deadline.abort();
  });
  try {
    const reply = await upstreams.send(request, deadline.signal);
    return {
      status: reply.status,
      ok: reply.status >= 200 && reply.status < 300,
      body: await textOf(reply),
    };
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    const why = deadline.signal.aborted ? 'time-out' : (error.code ?? error.message);
    throw new Failure(`no answer: ${cleanText(why, secret)}`);
  } finally {
    finished.abort();
  }
}

/** Returns the received part of a body that breaks off: the status is more useful than the error. */
async function textOf({ body }: UpstreamReply): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of body) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length >= bodyCharactersMax) return text;
    }
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
  }
  return text + decoder.decode();
}

/**
 * Removes the secret, because upstreams echo keys in errors, and control characters, because a terminal obeys
 * them. Shortens the text to `shownCharactersMax`.
 */
export function cleanText(text: string, secret: string | undefined): string {
  const hidden = secret === undefined ? text : text.replaceAll(secret, '(secret)');
  const printable = hidden.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  return printable.length > shownCharactersMax ? `${printable.slice(0, shownCharactersMax)}…` : printable;
}

// Reads the text of an upstream's answer to a test, with the reader that clients' answers go through. The text is
// shown and never billed.

interface ReplyText {
  /** As the upstream names it. */
  model: string;
  text: string;
  /** `finish_reason`, a note that it is missing, or how the answer failed. */
  ending: string;
}

const bytesMax = 1024 * 1024;
const limits = { answerBytesMax: bytesMax, documentBytesMax: bytesMax, lineLengthMax: bytesMax };

/** What a reader made of a whole body. */
interface ReplyReading {
  chunks: ChatChunk[];
  /** As the upstream names it, if it does. */
  model: string | undefined;
  /** Whether the upstream reported usage. */
  hasUsage: boolean;
  /** An UpstreamFailure or an ErrorInAnswer, after the chunks that came before it. */
  failure: unknown;
}

export function readReply(
  body: string,
  { Reader }: Pick<Dialect, 'Reader'>,
  context: ReaderContext,
): ReplyReading {
  const reader = new Reader(context);
  const events = new BodyEvents(limits);
  const chunks: ChatChunk[] = [];
  let model: string | undefined;
  let failure: unknown;
  try {
    const bytes = new TextEncoder().encode(body);
    for (const event of [...events.push(bytes), ...events.end()]) {
      if (event.kind === 'value') model ??= modelIn(event.value);
      chunks.push(...reader.push(event));
    }
    chunks.push(...reader.end());
  } catch (error) {
    failure = error;
  }
  return { chunks, model, hasUsage: reader.usage !== undefined, failure };
}

/** Undefined: the body is no answer in this dialect. */
function replyText(
  body: string,
  dialect: Pick<Dialect, 'Reader'>,
  context: ReaderContext,
): ReplyText | undefined {
  const { chunks, model, failure } = readReply(body, dialect, context);
  const failed = failure === undefined ? undefined : reasonOf(failure);
  const choices = chunks.flatMap((chunk) => chunk.choices.slice(0, 1));
  if (choices.length === 0) return undefined;
  const textOf = (field: 'content' | 'reasoning_content'): string =>
    choices.map(({ delta }) => delta[field] ?? '').join('');
  const finish = choices.findLast((choice) => choice.finish_reason)?.finish_reason;
  return {
    model: model ?? 'model not named',
    text: textOf('content') || textOf('reasoning_content'),
    ending: failed ?? finish ?? 'no finish_reason',
  };
}

/** Throws what is no failure of the upstream. */
export function reasonOf(error: unknown): string {
  if (error instanceof ErrorInAnswer) return 'an error in the answer';
  const failure = UpstreamFailure.from(error);
  if (failure) return failure.reason;
  throw error;
}

/** The name of the model in an event, or in the object that the event carries. */
function modelIn(event: unknown): string | undefined {
  if (!isRecord(event)) return undefined;
  const names = [event, ...Object.values(event).filter(isRecord)].map((object) => object['model']);
  return names.find((name) => typeof name === 'string');
}
