import { readChannel } from '../../config/compile/read-channel.ts';
import { loadDialect } from '../../upstreams/dialects/dialects.ts';
import type { UpstreamRequest } from '../../upstreams/exchange.ts';
import { channelRequest, upstreamModel } from '../../upstreams/types/channel-request.ts';
import { channelTypes } from '../../upstreams/types/channel-types.ts';
import { channelSecret } from './channel-secret.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import { firstWords } from './reply-text.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { remark, say } from '../../../infra/ops/cli/terminal/terminal.ts';
import { callUpstream, cleanText } from './upstream-call.ts';

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
  if (channelTypes[channel.type].awsScope)
    throw new Failure(
      `channels of the type ${channel.type} are called with the functions' own role, which this tool does not have: call the relay`,
    );
  const secret = await channelSecret(session, channel, options.secretEnv);
  const request = channelRequest(channel, {
    dialect: await loadDialect(),
    request: { model, messages: [{ role: 'user', content: 'Answer with the one word: ready' }] },
    model,
    secret,
    outputTokensLimit: tokensMax,
  });
  say(`POST ${request.url}, model ${upstreamModel(channel, model)}`);
  await send(request, channel.total_seconds * 1000, secret);
}

async function send(
  { url, headers, body }: UpstreamRequest,
  timeoutMs: number,
  secret: string | undefined,
): Promise<void> {
  const startMs = performance.now();
  const clean = (text: string): string => cleanText(text, secret);
  const reply = await callUpstream({ url, method: 'POST', headers, body, timeoutMs }, secret);
  say(`status ${reply.status} after ${Math.round(performance.now() - startMs)} ms`);
  const answer = reply.ok ? firstWords(reply.body) : undefined;
  if (answer === undefined)
    throw new Failure(`no chat completion came back: ${clean(reply.body) || 'an empty body'}`);
  say(`answer (${clean(answer.model)}): ${clean(answer.text) || `nothing (${answer.ending})`}`);
}
