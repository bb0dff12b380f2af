import { chunk, toolDelta, usageChunk } from './upstream-frames.ts';
import type { Script, UpstreamCall } from './scripted-upstream.ts';
import type { Reply } from './upstream-reply.ts';

/**
 * An upstream that obeys the first word of a conversation, like a real one that hostile content manipulates. It answers
 * every other conversation after the same time.
 */
const refusal = (status: number, code: string, message: string) => (reply: Reply) =>
  reply.json(status, { error: { message, type: 'invalid_request_error', param: null, code } });

const gulp = 'data: {"choices":[{"index":0,"delta":{"content":"some words that a model could say "}}]}\n\n';

async function floods(reply: Reply, megabytes: number, frame: string): Promise<void> {
  const some = Buffer.from(frame.repeat(Math.ceil(65_536 / frame.length)));
  for (let bytes = 0; bytes < megabytes * 1024 * 1024; bytes += some.length) await reply.write(some);
  await reply.data(chunk({}, 'stop'), usageChunk(), '[DONE]');
  reply.end();
}

const tokenLogprob = {
  token: 'word',
  logprob: -0.1,
  bytes: [119, 111, 114, 100],
  top_logprobs: Array.from({ length: 20 }, (_, at) => ({
    token: `word${at}`,
    logprob: -at,
    bytes: [119, 111, 114, 100, 48],
  })),
};

/** By the word that triggers it. */
export const provoked: Readonly<Record<string, (reply: Reply) => void | Promise<void>>> = {
  context: refusal(400, 'context_length_exceeded', 'This model has a maximum context length of 8192 tokens.'),
  policy: refusal(400, 'content_policy_violation', 'Your request was rejected by our safety system.'),
  image: refusal(400, 'invalid_image', 'The image data you provided does not represent a valid image.'),
  forbidden: refusal(403, 'forbidden', 'This content is not allowed for your organisation.'),
  large: refusal(413, 'request_too_large', 'Request exceeds the maximum size.'),
  unprocessable: refusal(422, 'unprocessable', 'The template could not be applied to this conversation.'),
  limit: refusal(400, 'invalid_value', 'max_tokens is too large: the maximum is 8192 output tokens.'),
  minute: refusal(429, 'rate_limit_exceeded', 'Request too large for the tokens per minute of this model.'),
  crash: (reply) => reply.json(500, { error: { message: 'The server had an error.', type: 'server_error' } }),
  gateway: (reply) => {
    reply.head(502, { 'content-type': 'text/html' });
    reply.end('<html><body>Bad gateway</body></html>');
  },
  overloaded: (reply) =>
    reply.json(503, { error: { message: 'Overloaded.', type: 'server_error' } }, { 'retry-after': '600' }),
  close: (reply) => reply.reset(),
  empty: (reply) => reply.end(),
  junk: (reply) => {
    reply.head(200, { 'content-type': 'text/html' });
    reply.end('<html><body>Sign in</body></html>');
  },
  inside: async (reply) => {
    await reply.data({ error: { message: 'The engine died.', type: 'server_error', code: null } });
    reply.end();
  },
  broken: async (reply) => {
    await reply.data(chunk({ role: 'assistant', content: 'some' }));
    reply.reset();
  },
  hang: (reply) => reply.hang(),
  name: async (reply) => {
    const name = 'n'.repeat(1024 * 1024);
    await reply.data(
      chunk(toolDelta(0, { id: 'call_1', type: 'function', function: { name, arguments: '' } })),
    );
    reply.end();
  },
  logprobs: (reply) => {
    const choice = { index: 0, delta: { content: 'word' }, logprobs: { content: [tokenLogprob] } };
    return floods(reply, 55, `data: ${JSON.stringify({ choices: [choice] })}\n\n`);
  },
  flood: (reply) => floods(reply, 60, gulp),
  /**
   * Seven megabytes for the client: more than the buffers on the way hold, and less than the limit that stops the
   * upstream.
   */
  long: (reply) => floods(reply, 2.2, gulp),
};

export const firstWord = ({ body }: UpstreamCall): string => {
  const messages = body['messages'] as { content?: unknown }[] | undefined;
  const content = messages?.[0]?.content;
  return typeof content === 'string' ? (content.split(' ', 1)[0] ?? '') : '';
};

/** `latencyMs`: how long an honest conversation waits for its first word. */
export const worstUpstream =
  (latencyMs = 0): Script =>
  async (call, reply) => {
    const provokes = provoked[firstWord(call)];
    if (provokes) return provokes(reply);
    if (latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, latencyMs));
    await reply.data(
      chunk({ role: 'assistant', content: 'Served.' }),
      chunk({}, 'stop'),
      usageChunk(),
      '[DONE]',
    );
    reply.end();
  };
