/** The thread helper of Anthropic's SDK on the running stack: with a vendor that stores threads, and with another API. */
import Anthropic, { NotFoundError } from '@anthropic-ai/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { WatchedStack } from '../hardening/watched-stack.ts';
import type { ScriptedUpstream, Script } from '../support/scripted-upstream.ts';
import { ThreadUpstream } from '../support/thread-upstream.ts';
import { frames } from '../support/upstream-scripts.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { accountsStack, leaveAccountsStack, inputPrice, outputPrice } from './accounts-stack.ts';
import { keyOf, nano, rowsOfAccount, type MoneyReader, type Row } from './money-reader.ts';

const accounts = ['held', 'streamed', 'strict', 'forgotten', 'chat', 'chat-strict', 'tools', 'thief'];

let upstream: ScriptedUpstream;
let stack: WatchedStack;
let money: MoneyReader;
let vendor: ThreadUpstream;

beforeAll(async () => {
  const rows = accounts.flatMap((account) => rowsOfAccount(account, 100));
  ({ stack, upstream, money } = await accountsStack(rows));
});
afterAll(leaveAccountsStack);

const script: Script = (call, reply) => {
  const { path, body } = call;
  const word = JSON.stringify(body).includes('PELICAN') ? 'PELICAN' : 'unknown';
  if (!path.endsWith('/messages'))
    return frames(
      chunk({ content: `The word is ${word}.` }),
      chunk({}, 'stop'),
      usageChunk({ prompt_tokens: 40, completion_tokens: 5 }),
    )(call, reply);
  const answer = vendor.answer(body);
  return reply.json(answer.status, answer.body);
};
beforeEach(() => {
  vendor = new ThreadUpstream();
  upstream.forget();
  upstream.script(script);
});

const clientOf = (account: string): Anthropic =>
  new Anthropic({ baseURL: stack.origin, apiKey: keyOf(account), maxRetries: 0, logLevel: 'off' });
const threadOf = (account: string, model: string, more: object = {}) =>
  clientOf(account).beta.messages.thread({
    model,
    max_tokens: 100,
    unsupportedRequestBehavior: 'continue_unthreaded',
    ...more,
  });
const user = (content: string) => ({ role: 'user' as const, content });
const secret = user('my secret word is PELICAN');
const question = user('what is my secret word?');
const textOf = ({ content }: Anthropic.Beta.BetaMessage): string =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('');
const sentCounts = (): (number | undefined)[] =>
  upstream.requests.map(({ body }) => (body['messages'] as Row[] | undefined)?.length);
/** Recomputed from the vendor's counts. */
const due = (counts: { input: number; output: number }[]): number =>
  counts.reduce(
    (sum, { input, output }) => sum + Math.round((input * inputPrice + output * outputPrice) * 1e6),
    0,
  );

describe('a thread of the SDK', () => {
  it('sends only the new turn to a vendor that stores threads, and is charged for the whole thread', async () => {
    const thread = threadOf('held', 'claude');
    await thread.send(secret);
    for (let turn = 0; turn < 3; turn += 1) expect(textOf(await thread.send(question))).toContain('PELICAN');
    expect(sentCounts()).toEqual([1, 1, 1, 1]);
    const { spent, available } = await money.settled('held');
    expect(spent).toBe(due(vendor.answers));
    expect(available).toBe(100 * nano - spent);
  });

  it('streams, and continues', async () => {
    const thread = threadOf('streamed', 'claude');
    await thread.stream(secret).finalMessage();
    expect(textOf(await thread.stream(question).finalMessage())).toContain('PELICAN');
    expect(sentCounts()).toEqual([1, 1]);
    expect((await money.settled('streamed')).spent).toBe(due(vendor.answers));
  });

  it('is replayed without loss if the vendor has lost it', async () => {
    const thread = threadOf('forgotten', 'claude', { unsupportedRequestBehavior: 'error' });
    await thread.send(secret);
    vendor.expire();
    expect(textOf(await thread.send(question))).toContain('PELICAN');
    expect(textOf(await thread.send(question))).toContain('PELICAN');
    expect(sentCounts()).toEqual([1, 1, 3, 1]);
    expect((await money.settled('forgotten')).spent).toBe(due(vendor.answers));
  });

  it('runs tools', async () => {
    const thread = threadOf('tools', 'claude', { tools: [{ name: 'f', input_schema: { type: 'object' } }] });
    await thread.send(secret);
    expect(textOf(await thread.send(question))).toContain('PELICAN');
    expect(upstream.requests.map(({ body }) => 'tools' in body)).toEqual([true, false]);
  });

  it('continues without a thread at a vendor with another API', async () => {
    const thread = threadOf('chat', 'chat');
    await thread.send(secret);
    expect(textOf(await thread.send(question))).toContain('PELICAN');
    expect(textOf(await thread.send(question))).toContain('PELICAN');
    expect(sentCounts()).toEqual([1, 3, 5]);
    const { spent } = await money.settled('chat');
    expect(spent).toBe(due([1, 2, 3].map(() => ({ input: 40, output: 5 }))));
  });

  it('throws its error class at a vendor with another API, if configured to', async () => {
    const thread = threadOf('chat-strict', 'chat', { unsupportedRequestBehavior: 'error' });
    await thread.send(secret);
    const error = await thread.send(question).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Anthropic.Messages.ThreadUnsupportedRequestError);
    expect(error).toMatchObject({
      errorCode: 'thread_unsupported_request',
      details: { unsupported: ['thread'] },
    });
  });

  it('cannot be continued with the key of another account', async () => {
    const thread = threadOf('strict', 'claude');
    const { id } = await thread.send(secret);
    const error = await clientOf('thief')
      .beta.messages.create({
        model: 'claude',
        max_tokens: 100,
        messages: [question],
        thread: { type: 'continue', previous_message_id: id },
        betas: ['message-threads-2026-08-12'],
      })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toBeInstanceOf(Anthropic.Messages.ThreadNotFoundError);
    expect(textOf(await thread.send(question))).toContain('PELICAN');
    expect((await money.settled('thief')).spent).toBe(0);
  });
});
