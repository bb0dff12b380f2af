/**
 * Sends one small chat request to a channel, built and addressed as by the relay. The upstream charges for
 * it; no row is written.
 */
import { loadDialect } from '../../upstreams/dialects/dialects.ts';
import { CallIds } from '../../upstreams/calls/call-ids.ts';
import type { Dialect, ReaderContext } from '../../upstreams/dialect.ts';
import type { UpstreamRequest } from '../../upstreams/exchange.ts';
import { dialectOf, upstreamModel } from '../../upstreams/types/channel-quirks.ts';
import { channelRequest } from '../../upstreams/types/channel-request.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import { channelSecret, findChannel, refuseRoleSigned, servedModel } from './find-channel.ts';
import { replyText, type ReplyText } from './reply-text.ts';
import { callUpstream, cleanText } from './upstream-call.ts';

export interface TestInput {
  id: string;
  /** Public name; absent: the channel's first model. */
  model?: string;
  /** See `channelSecret`. */
  secretEnv?: string;
}

export interface ChannelTestPlan extends Plan<Pick<UpstreamRequest, 'url'>> {
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
