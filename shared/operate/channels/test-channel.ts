/**
 * Calls a channel's upstream without the relay, with a request that is built, addressed and read as by the relay. The answer is
 * shown and never billed; the upstream charges for it, and no row is written. Text from `cleanText` is safe to show.
 */
import { exchangeText } from '../../relay/http/exchange-text.ts';
import { BodyEvents } from '../../upstreams/body-events.ts';
import { CallIds } from '../../upstreams/call-ids.ts';
import { loadDialect, ownDialectNames } from '../../upstreams/dialects/dialects.ts';
import { ErrorInAnswer, UpstreamFailure, type UpstreamRequest } from '../../upstreams/exchange.ts';
import { canCarry, dialectOf, upstreamModelOf, buildRequest } from '../../upstreams/called-channel.ts';
import { channelTypes } from '../../upstreams/types/channel-types.ts';
import type { ChatMessage, ChatRequest } from '../../wire/canonical-call.ts';
import type { ChatChunk } from '../../wire/chat-response.ts';
import { isRecord } from '../../wire/json.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { Failure, usageFailure } from '../plan.ts';
import { readChannelSecret, findChannel } from './list-channels.ts';

export interface TestInput {
  id: string;
  model?: string;
  secretEnv?: string;
}

const testTokensMax = 64;
const embedding = { inputs: ['ready'], dimensions: undefined };

/** `call` contains the secret, so it must not be shown. */
export async function planChannelTest(ports: OperatorPorts, input: TestInput) {
  const { called, warnings } = await prepareDirectChannel(ports, input);
  const { channel, model } = called;
  const messages = [{ role: 'user' as const, content: 'Answer with the one word: ready' }];
  const asked = { request: { messages }, tokensMax: testTokensMax };
  const call = await buildDirectCall(called, { ...asked, dialect: dialectOf(channel, model) });
  const own = ownDialectNames.filter((dialect) => canCarry(channel, dialect));
  const others = await Promise.all(own.map((dialect) => buildDirectCall(called, { ...asked, dialect })));
  const { url } = call.built.request;
  const effect = [`POST ${url}, model ${upstreamModelOf(channel, model)}`];
  return { changes: [{ url }], effect, questions: [], warnings, call, others };
}

/** A channel as it is asked without the relay, by a public name that it serves: the wanted one, else its first. */
export async function prepareDirectChannel(
  ports: OperatorPorts,
  { id, model: wanted, secretEnv }: TestInput,
) {
  const { raw, channel, warnings } = await findChannel(ports, id);
  const { models, type } = channel;
  const model = wanted ?? models[0];
  if (model === undefined || !models.includes(model))
    throw usageFailure(`channel ${id} serves ${models.join(', ') || 'no models'}: choose one with --model`);
  if (channelTypes[type].awsScope)
    throw new Failure(
      `channels of type ${type} use the IAM role of the functions, which this command does not have: test through the relay instead`,
    );
  const secret = await readChannelSecret(ports, channel, secretEnv);
  return { called: { channel, model, secret }, raw, warnings };
}

/**
 * A model that refuses a conversation is asked as one that does something else. Throws a Failure if the upstream does not respond.
 * `url`, `status`: of the call that was answered, else of the first. `body`: the beginning of the response's, without the secret.
 */
export async function carryOutChannelTest(
  ports: OperatorPorts,
  { call, others }: { call: DirectCall; others: DirectCall[] },
) {
  const startMs = ports.clock.now();
  const first = await sendCall(ports, call);
  const asked = [{ call, ...first }];
  for (const other of [400, 403, 404].includes(first.status) ? others : [])
    asked.push({ call: other, ...(await sendCall(ports, other)) });
  const answered = asked.find(({ ok }) => ok);
  const { call: told, status, body } = answered ?? { call, ...first };
  const redact = (text: string): string => cleanText(text, call.called.secret);
  const answer = answered && replyText(readReply(body, told));
  return {
    url: told.built.request.url,
    status,
    elapsedMs: ports.clock.now() - startMs,
    answer: answer && { ...answer, model: redact(answer.model), text: redact(answer.text) },
    body: redact(body),
  };
}

export type CalledDirectly = Awaited<ReturnType<typeof prepareDirectChannel>>['called'];

export interface AskedDirectly {
  dialect: string;
  request: Partial<ChatRequest> & { messages: ChatMessage[] };
  tokensMax: number;
}

export type DirectCall = Awaited<ReturnType<typeof buildDirectCall>>;

/** A call that is built and was not sent. Throws CannotCarry. */
export async function buildDirectCall(
  called: CalledDirectly,
  { dialect: name, request, tokensMax }: AskedDirectly,
) {
  const { channel, model, secret } = called;
  const dialect = await loadDialect(name);
  const callIds = new CallIds({ channel: channel.id, requestId: '' });
  const built = buildRequest(channel, {
    dialect,
    call: { form: '', request: { ...request, model }, unknown: {}, embedding },
    model,
    secret,
    outputTokensLimit: tokensMax,
    outputTokensDefault: tokensMax,
    states: new Map(),
    callIds,
    omissions: new Set(),
  });
  const { sent, quirks } = built;
  const context = { identity: { requestId: '', created: 0, model }, sent, callIds, quirks };
  return { called, dialect, built, context };
}

export const sendCall = (ports: OperatorPorts, { called: { channel, secret }, built }: DirectCall) =>
  callUpstream(ports, built.request, { secret, timeoutMs: channel.total_seconds * 1000 });

/** The longest lists of models have some megabytes. */
const bodyCharactersMax = 16 * 1024 * 1024;

/** Throws a Failure if the upstream does not respond. */
export async function callUpstream(
  { clock, upstreams: transport }: OperatorPorts,
  request: UpstreamRequest,
  { secret, timeoutMs }: { secret: string | undefined; timeoutMs: number },
) {
  const bounds = { timeoutMs, charactersMax: bodyCharactersMax };
  const reply = await exchangeText({ clock, transport }, request, bounds);
  if ('problem' in reply)
    throw new Failure(`the upstream did not respond: ${cleanText(reply.problem, secret)}`);
  return { ...reply, ok: reply.status >= 200 && reply.status < 300 };
}

const shownCharactersMax = 300;

/**
 * Removes the secret, because upstreams echo keys in errors, and control characters, because a terminal obeys
 * them. Shortens the text to `shownCharactersMax`.
 */
export function cleanText(text: string, secret: string | undefined): string {
  const hidden = secret === undefined ? text : text.replaceAll(secret, '(secret)');
  const printable = hidden.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  return printable.length > shownCharactersMax ? `${printable.slice(0, shownCharactersMax)}…` : printable;
}

const readBytesMax = 1024 * 1024;
const limits = { answerBytesMax: readBytesMax, documentBytesMax: readBytesMax, lineLengthMax: readBytesMax };

/**
 * Reads a whole body with the reader that clients' answers go through. `model`: as the upstream names it, if it does. `failure`: an
 * UpstreamFailure or an ErrorInAnswer, after the chunks that came before it.
 */
export function readReply(body: string, { dialect, context }: DirectCall) {
  const reader = new dialect.Reader(context);
  const events = new BodyEvents(limits);
  const chunks: ChatChunk[] = [];
  let model: string | undefined;
  let failure: unknown;
  try {
    const bytes = new TextEncoder().encode(body);
    for (const event of [...events.push(bytes), ...events.end()]) {
      if (event.kind === 'value') model ??= findModelName(event.value);
      chunks.push(...reader.push(event));
    }
    chunks.push(...reader.end());
  } catch (error) {
    failure = error;
  }
  return { chunks, model, usage: reader.report().usage, failure };
}

function findModelName(event: unknown): string | undefined {
  if (!isRecord(event)) return undefined;
  const names = [event, ...Object.values(event).filter(isRecord)].map((object) => object['model']);
  return names.find((name) => typeof name === 'string');
}

/**
 * Returns nothing when the body is not an answer in this dialect. `ending` is the `finish_reason`, or says that it
 * is missing or how the answer failed.
 */
function replyText({ chunks, model, failure }: ReturnType<typeof readReply>) {
  const failed = failure === undefined ? undefined : reasonOf(failure);
  const named = model ?? 'model not named';
  const [vector] = chunks.flatMap(({ vectors = [] }) => vectors);
  if (vector) return { model: named, text: `a vector of ${vector.length} numbers`, ending: 'stop' };
  const choices = chunks.flatMap((chunk) => chunk.choices.slice(0, 1));
  if (choices.length === 0) return undefined;
  const joinText = (field: 'content' | 'reasoning_content'): string =>
    choices.map(({ delta }) => delta[field] ?? '').join('');
  const finish = choices.findLast((choice) => choice.finish_reason)?.finish_reason;
  return {
    model: named,
    text: joinText('content') || joinText('reasoning_content'),
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
