import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { readChannel } from '../../config/compile/read-channel.ts';
import { channelTypes } from '../../upstreams/channel-type.ts';
import { channelSecret } from './channel-secret.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import { firstWords } from './reply-text.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { remark, say } from '../../../infra/ops/cli/terminal/terminal.ts';
import { callUpstream, cleanText, type UpstreamCall } from './upstream-call.ts';

export interface TestOptions {
  model?: string;
  secretEnv?: string;
}

const tokensMax = 64;

/** Sends one tiny chat request as the relay would, and shows what came back. Throws when it was no answer. */
export async function testChannel(session: Session, id: string, options: TestOptions): Promise<void> {
  const raw = await session.tables.get('channels', id);
  if (raw === undefined) throw usageFailure(`there is no channel ${id}: see \`channel list\``);
  const reading = readChannel(raw, session.target);
  if ('problem' in reading) throw new Failure(`channel ${id} is not used: ${reading.problem}`);
  const channel = reading.row;
  if (reading.warning !== undefined) remark(`warning: ${reading.warning}`);
  const model = options.model ?? channel.models[0];
  if (model === undefined || !channel.models.includes(model)) {
    throw usageFailure(
      `channel ${id} serves ${channel.models.join(', ') || 'no model'}: choose one with --model`,
    );
  }
  const type = channelTypes[channel.type];
  if (type.awsScope)
    throw new Failure(
      `channels of the type ${channel.type} are called with the functions' own role, which this tool does not have: call the relay`,
    );
  const secret = await channelSecret(session, channel, options.secretEnv);
  const upstreamModel = (Object.hasOwn(channel.mapper, model) ? channel.mapper[model] : undefined) ?? model;
  const url = type.address(channel, upstreamModel);
  say(`POST ${url}, model ${upstreamModel}`);
  await send(channel, { url, body: requestBody(channel, upstreamModel) }, secret);
}

function requestBody(channel: ChannelRow, model: string): Record<string, unknown> {
  const { params } = channel;
  const type = channelTypes[channel.type];
  const limitField = channel.max_tokens_field ?? type.limitField(channel);
  const asksUsage = params.stream && params.include_usage && (type.tellsUsage?.(channel) ?? true);
  const body: Record<string, unknown> = {
    model,
    messages: [{ role: 'user', content: 'Answer with the one word: ready' }],
    [limitField]: Math.min(tokensMax, params.max_output_tokens ?? tokensMax),
    ...(params.stream && { stream: true }),
    ...(asksUsage && { stream_options: { include_usage: true } }),
    ...params.set,
  };
  for (const field of params.drop) delete body[field];
  return body;
}

async function send(
  channel: ChannelRow,
  { url, body }: { url: string; body: unknown },
  secret: string | undefined,
): Promise<void> {
  const startMs = performance.now();
  const clean = (text: string): string => cleanText(text, secret);
  const credentials = secret === undefined ? {} : channelTypes[channel.type].credentials(secret);
  const call: UpstreamCall = {
    url,
    method: 'POST',
    headers: { 'content-type': 'application/json', ...credentials },
    body: JSON.stringify(body),
    timeoutMs: channel.total_seconds * 1000,
  };
  const reply = await callUpstream(call, secret);
  say(`status ${reply.status} after ${Math.round(performance.now() - startMs)} ms`);
  const answer = reply.ok ? firstWords(reply.body) : undefined;
  if (answer === undefined)
    throw new Failure(`no chat completion came back: ${clean(reply.body) || 'an empty body'}`);
  say(`answer (${clean(answer.model)}): ${clean(answer.text) || `nothing (${answer.ending})`}`);
}
