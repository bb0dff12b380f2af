import type { ChannelRow } from '../../shared/config/channel-row.ts';
import { readChannel, secretsOf } from '../../shared/config/read-channel.ts';
import { Failure, usageFailure } from './failure.ts';
import { firstWords } from './reply-text.ts';
import type { Session } from './session.ts';
import { remark, say } from './terminal.ts';

export interface TestOptions {
  model?: string;
  secretEnv?: string;
}

const tokensMax = 64;
const shownCharactersMax = 300;

/** Sends one tiny chat request as the relay would, and shows what came back. Throws when it was no answer. */
export async function testChannel(
  session: Session,
  id: string,
  options: TestOptions,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
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
  const secret = resolveSecret(channel, options.secretEnv, environment);
  const upstreamModel = Object.hasOwn(channel.mapper, model) ? channel.mapper[model] : model;
  say(`POST ${channel.endpoint}/chat/completions, model ${upstreamModel}`);
  await send(channel, requestBody(channel, String(upstreamModel)), secret);
}

function resolveSecret(
  channel: ChannelRow,
  secretEnv: string | undefined,
  environment: NodeJS.ProcessEnv,
): string | undefined {
  const [reference] = secretsOf(channel);
  const name = secretEnv ?? (reference?.startsWith('env:') ? reference.slice('env:'.length) : undefined);
  if (name === undefined) {
    if (reference === undefined) return undefined;
    throw usageFailure(
      `the secret is stored at ${reference}, which this command does not read: ` +
        'put the key into an environment variable and name it with --secret-env',
    );
  }
  const value = environment[name];
  if (!value) throw new Failure(`the environment variable ${name} is not set in this shell`);
  return value;
}

function requestBody(channel: ChannelRow, model: string): Record<string, unknown> {
  const { params } = channel;
  const isOpenAi = new URL(channel.endpoint).hostname === 'api.openai.com';
  const limitField = channel.max_tokens_field ?? (isOpenAi ? 'max_completion_tokens' : 'max_tokens');
  const body: Record<string, unknown> = {
    model,
    messages: [{ role: 'user', content: 'Answer with the one word: ready' }],
    [limitField]: Math.min(tokensMax, params.max_output_tokens ?? tokensMax),
    ...(params.stream && { stream: true }),
    ...(params.stream && params.include_usage && { stream_options: { include_usage: true } }),
    ...params.set,
  };
  for (const field of params.drop) delete body[field];
  return body;
}

async function send(channel: ChannelRow, body: unknown, secret: string | undefined): Promise<void> {
  const startMs = performance.now();
  const clean = (text: string): string => cleanText(text, secret);
  const reply = await fetch(`${channel.endpoint}/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
    },
    body: JSON.stringify(body),
    redirect: 'manual',
    signal: AbortSignal.timeout(channel.total_seconds * 1000),
  }).catch((error: unknown) => {
    throw new Failure(`no answer: ${clean(describeFetchError(error))}`);
  });
  const text = await reply.text().catch(() => '');
  const tookMs = Math.round(performance.now() - startMs);
  say(`status ${reply.status} after ${tookMs} ms`);
  const answer = reply.ok ? firstWords(text) : undefined;
  if (answer === undefined)
    throw new Failure(`no chat completion came back: ${clean(text) || 'an empty body'}`);
  say(`answer (${clean(answer.model)}): ${clean(answer.text) || `nothing (${answer.ending})`}`);
}

/** Upstreams echo keys in their errors; a terminal must not obey what an upstream sends. */
function cleanText(text: string, secret: string | undefined): string {
  const hidden = secret === undefined ? text : text.replaceAll(secret, '(secret)');
  const printable = hidden.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  return printable.length > shownCharactersMax ? `${printable.slice(0, shownCharactersMax)}…` : printable;
}

function describeFetchError(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.name === 'TimeoutError') return 'time-out';
  const { cause } = error;
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message;
  return error.message;
}
