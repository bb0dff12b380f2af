/**
 * Sends one call of a probe to a channel, built and read as by the relay, and says what came of it. Decides by status
 * and machine-readable fields, never by a text.
 */
import { withheldTexts } from '../../../upstreams/errors/withheld-texts.ts';
import type { ChannelRow } from '../../../config/rows/channel-row.ts';
import { CallIds } from '../../../upstreams/calls/call-ids.ts';
import { CannotCarry, type Dialect } from '../../../upstreams/dialect.ts';
import { loadDialect } from '../../../upstreams/dialects/dialects.ts';
import { failureInAnswer, readFailure } from '../../../upstreams/read-failure.ts';
import { channelRequest, type BuiltRequest } from '../../../upstreams/types/channel-request.ts';
import { channelTypes } from '../../../upstreams/types/channel-types.ts';
import { CallerFault, ErrorInAnswer, UpstreamFailure } from '../../../upstreams/upstream-failure.ts';
import type { ChatMessage, ChatRequest } from '../../../wire/chat-request.ts';
import { Failure } from '../../operator-failure.ts';
import type { OperatorPorts } from '../../operator-ports.ts';
import { readReply, reasonOf } from '../reply-text.ts';
import { callUpstream, cleanText, type UpstreamAnswer } from '../upstream-call.ts';

/** A model that thinks has room for it; a short answer never needs as much. */
export const outputTokensMax = 2048;

export interface ProbedChannel {
  channel: ChannelRow;
  /** The public name. */
  model: string;
  secret: string | undefined;
}

/** A request without the model's name. */
export type ModellessRequest = Partial<ChatRequest> & { messages: ChatMessage[] };

export interface ProbeRequest {
  dialect: string;
  request: ModellessRequest;
}

export interface ProbeAnswer {
  kind: 'answered';
  text: string;
  /** The number of tool calls. */
  calls: number;
  /** true: the limit on output tokens ended the answer. */
  isCut: boolean;
  hasUsage: boolean;
}

export type ProbeOutcome =
  | ProbeAnswer
  /** The upstream refused this request. `unsent`: the dialect has no form for it, so nothing was sent. */
  | { kind: 'refused' | 'unsent' }
  /** The upstream refused the key. */
  | { kind: 'denied'; said: string }
  /** The address does not speak the dialect, or failed in a way that may not be the request's fault. */
  | { kind: 'unusable' | 'refused'; said: string };

export type ProbePorts = Pick<OperatorPorts, 'clock' | 'upstreams'>;

/**
 * Throws a Failure for what says nothing about the channel: no answer, an empty account, too many requests, an
 * upstream that is down. `onSend` is called before the request is sent.
 */
export async function probeCall(
  ports: ProbePorts,
  { channel, model, secret }: ProbedChannel,
  { asked, onSend }: { asked: ProbeRequest; onSend: () => void },
): Promise<ProbeOutcome> {
  const dialect = await loadDialect(asked.dialect);
  const callIds = new CallIds({ channel: channel.id, requestId: '' });
  const call = { form: '', request: { ...asked.request, model }, unknown: {} };
  const limits = { outputTokensLimit: outputTokensMax, outputTokensDefault: outputTokensMax };
  const states = new Map();
  const without = new Set<never>();
  let built: BuiltRequest;
  try {
    built = channelRequest(channel, { dialect, call, model, secret, ...limits, states, callIds, without });
  } catch (error) {
    if (error instanceof CannotCarry) return { kind: 'unsent' };
    throw error;
  }
  if (isChanged(call.request, built)) return { kind: 'unsent' };
  onSend();
  const timeoutMs = channel.total_seconds * 1000;
  const answer = await callUpstream(ports, built.request, { secret, timeoutMs });
  const said = `status ${answer.status}: ${shown(answer.body, secret)}`;
  if (!answer.ok) return await refusedOutcome(answer, { dialect, channel, built, said });
  const { sent, quirks } = built;
  const context = { identity: { requestId: '', created: 0, model }, sent, callIds, quirks };
  const { chunks, hasUsage, failure } = readReply(answer.body, dialect, context);
  if (failure instanceof ErrorInAnswer)
    return outcomeOf(
      failureInAnswer(failure.error, withheldTexts(built.known), channelTypes[channel.type]),
      said,
    );
  if (failure !== undefined) return { kind: 'unusable', said: `${said} (${reasonOf(failure)})` };
  const choices = chunks.flatMap((chunk) => chunk.choices.filter(({ index }) => index === 0));
  const indexes = choices.flatMap(({ delta }) => delta.tool_calls?.map(({ index }) => index) ?? []);
  return {
    kind: 'answered',
    text: choices.map(({ delta }) => delta.content ?? '').join(''),
    calls: new Set(indexes).size,
    isCut: choices.some(({ finish_reason: reason }) => reason === 'length'),
    hasUsage,
  };
}

/** Whether the dialect sent another effort than the asked one, or none. */
const isChanged = ({ reasoning_effort: effort }: ChatRequest, { sent }: BuiltRequest): boolean =>
  effort !== undefined && (sent.effort !== undefined || sent.dropped.includes('reasoning_effort'));

interface Refused {
  dialect: Dialect;
  channel: ChannelRow;
  built: BuiltRequest;
  said: string;
}

async function refusedOutcome(
  { status, body }: UpstreamAnswer,
  { dialect, channel, built, said }: Refused,
): Promise<ProbeOutcome> {
  const reply = { status, headers: {}, body: bytesOf(body) };
  const type = channelTypes[channel.type];
  return outcomeOf(await readFailure(reply, { dialect, type, withheld: withheldTexts(built.known) }), said);
}

/** Statuses of an upstream that fails whatever it is asked, for a time. */
const isPassing = (status: number): boolean =>
  status === 408 || status === 429 || (status >= 502 && status <= 599);

function outcomeOf(failure: CallerFault | UpstreamFailure, said: string): ProbeOutcome {
  if (failure instanceof CallerFault) return { kind: 'refused', said };
  const { kind, status = 0 } = failure;
  if (status === 402 || (kind === 'secret' && status === 0))
    throw new Failure(`nothing was written: the account at the upstream has no credit left (${said})`);
  if (isPassing(status))
    throw new Failure(`nothing was written: the upstream does not answer at the moment (${said})`);
  if (kind === 'secret' || status === 401 || status === 403) return { kind: 'denied', said };
  return { kind: 'unusable', said };
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  yield new TextEncoder().encode(text);
}

/** The beginning of a body, for operators. A web page says nothing that helps. */
const shown = (body: string, secret: string | undefined): string =>
  /^\s*</.test(body) ? 'a web page' : cleanText(body, secret) || 'an empty body';
