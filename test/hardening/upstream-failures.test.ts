import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Script, ScriptedUpstream } from '../support/scripted-upstream.ts';
import {
  doneAlone,
  empty200,
  emptyJson200,
  errorAsFirstFrame,
  errorInJson200,
  errorMidStream,
  errorStatus,
  html200,
  htmlStatus,
  junkAlone,
  resetsBeforeHead,
  stopsEarly,
} from '../support/upstream-failures.ts';
import { chunk } from '../support/upstream-frames.ts';
import { silence, textStream, textThenSilence } from '../support/upstream-scripts.ts';
import { expectErrorBody, framesOf, streamedText } from './answers.ts';
import { canaries } from './canaries.ts';
import { hardeningStack, modelOf, type ChannelKind as Kind } from './hardening-stack.ts';
import { breaksAfterWords, rawBreaks, rawFailures, type RawUpstream } from './raw-upstream.ts';
import { peakMegabytes } from './process-memory.ts';
import * as rough from './rough-scripts.ts';
import type { WatchedStack } from './watched-stack.ts';

let upstream: ScriptedUpstream;
let raw: RawUpstream;
let stack: WatchedStack;
let firstProcess: number[];

beforeAll(async () => {
  ({ upstream, raw, stack } = await hardeningStack());
  await stack.post(call('plain', false));
  firstProcess = stack.chatProcesses();
});
beforeEach(() => upstream.script(textStream('Hello there.')));

const call = (model: string, stream: boolean) => ({
  model,
  stream,
  messages: [{ role: 'user', content: 'Hello' }],
});

/** One request. Checks that the same process serves the next one. */
async function answer(kind: Kind, stream: boolean): Promise<{ status: number; text: string }> {
  const response = await stack.post(call(modelOf(kind), stream));
  const text = await response.text();
  expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-z]{26}$/);
  await expectAlive();
  return { status: response.status, text };
}

async function expectAlive(): Promise<void> {
  upstream.script(textStream('Still here.'));
  const next = await stack.post(call('plain', false));
  expect(await next.text()).toContain('Still here.');
  expect(stack.chatProcesses()).toEqual(firstProcess);
  // A function has 256 MB; without a limit other than the heap's, a process survives with more.
  expect(peakMegabytes(firstProcess.at(-1) ?? 0)).toBeLessThan(256);
}

type Ending = [status: number, code: string, type?: string];
const unavailable: Ending = [502, 'upstream_unavailable'];
const timedOut: Ending = [504, 'upstream_timeout'];
const limited: Ending = [429, 'rate_limit_exceeded', 'rate_limit_error'];
const passedOn = (status: number): Ending => [status, 'upstream_code', 'invalid_request_error'];

const beforeContent: [name: string, kind: Kind, script: Script | undefined, ending: Ending][] = [
  ['refuses connections', 'refusing', undefined, unavailable],
  ['does not speak TLS', 'no-tls', undefined, unavailable],
  ['resets the connection', 'plain', resetsBeforeHead, unavailable],
  ['answers a web page', 'plain', html200, unavailable],
  ['answers a web page as 404', 'plain', htmlStatus(404), unavailable],
  ['answers a web page as 502', 'plain', htmlStatus(502), unavailable],
  ['answers junk', 'plain', junkAlone, unavailable],
  ['answers an error in JSON under 200', 'plain', errorInJson200, unavailable],
  ['answers an error as the first frame', 'plain', errorAsFirstFrame, unavailable],
  ['answers nothing', 'plain', empty200, unavailable],
  ['answers nothing as JSON', 'plain', emptyJson200, unavailable],
  ['answers [DONE] alone', 'plain', doneAlone, unavailable],
  ['answers 204', 'plain', rough.noContent, unavailable],
  ['redirects', 'plain', rough.redirect, unavailable],
  ['says nothing', 'quick', silence, timedOut],
  ['sends nothing after its headers', 'quick', rough.headThenSilence, timedOut],
  ['sends only comments', 'quick', rough.commentsWithoutEnd, timedOut],
  ['sends only empty deltas', 'quick', rough.emptyDeltasWithoutEnd, timedOut],
  ['sends endless blanks', 'plain', rough.blanksWithoutEnd, unavailable],
  ['sends a line without end', 'plain', rough.lineWithoutEnd, unavailable],
  ['sends a JSON document without end', 'plain', rough.documentWithoutEnd, unavailable],
  ['sends a refusal without end', 'plain', rough.refusalWithoutEnd(400), unavailable],
  ['sends half a refusal', 'quick', rough.refusalThenSilence, timedOut],
  ['sends a failure without end', 'plain', rough.refusalWithoutEnd(500), unavailable],
  ['has no secret', 'no-secret', undefined, unavailable],
  ['has a secret that no header can carry', 'broken-secret', undefined, unavailable],
  ...[400, 404, 413, 422].map((status): (typeof beforeContent)[number] => [
    `answers ${status}`,
    'plain',
    errorStatus(status),
    passedOn(status),
  ]),
  [
    'answers 400 with members of the wrong kind',
    'plain',
    rough.strangeRefusal,
    [400, 'upstream_refused', 'invalid_request_error'],
  ],
  ['answers 429', 'patient', errorStatus(429, {}, { 'retry-after': '3' }), limited],
  ...[300, 401, 402, 403, 405, 408, 409, 418, 451, 500, 502, 503, 504, 529].map(
    (status): (typeof beforeContent)[number] => [
      `answers ${status}`,
      status === 401 || status === 402 ? 'patient' : 'plain',
      errorStatus(status),
      unavailable,
    ],
  ),
];

/** Before its first content a stream fails like JSON, so each case uses only one of both, in turn. */
const oneWay = <Case>(cases: Case[], stream: boolean): Case[] =>
  cases.filter((_, at) => (at % 2 === 1) === stream);

describe.each([false, true])('before its first content, stream %s: an upstream that', (stream) => {
  test.each(oneWay(beforeContent, stream))(
    '%s',
    async (_name, kind, script, [status, code, type = 'upstream_error']) => {
      if (script) upstream.script(script);
      const { status: given, text } = await answer(kind, stream);
      expectErrorBody(text, type, code);
      expect(given).toBe(status);
      expect(text).not.toMatch(/<h1>|127\.0\.0\.1|BROKEN/);
      expect(text).not.toContain(canaries.secret);
    },
  );

  test.each(oneWay(Object.keys(rawFailures) as (keyof typeof rawFailures)[], stream))('%s', async (name) => {
    raw.script(rawFailures[name]);
    const { status, text } = await answer('raw', stream);
    expectErrorBody(text, 'upstream_error', 'upstream_unavailable');
    expect(status).toBe(502);
  });

  test('never finishes its handshake', async () => {
    raw.script(() => {});
    const { status, text } = await answer('no-handshake', stream);
    expectErrorBody(text, 'upstream_error', 'upstream_unavailable');
    expect(status).toBe(502);
  });
});

const afterContent: [name: string, kind: Kind, script: Script, code: string][] = [
  ['stops early', 'plain', stopsEarly, 'upstream_unavailable'],
  ['sends an error', 'plain', errorMidStream, 'upstream_unavailable'],
  ['falls silent', 'quick', textThenSilence('one two'), 'upstream_timeout'],
  ['never ends', 'quick', rough.wordsWithoutEnd, 'upstream_timeout'],
  ['sends a line without end', 'plain', rough.lineWithoutEndAfterWords, 'upstream_unavailable'],
  ['sends more than the relay accepts', 'plain', rough.framesWithoutEnd, 'upstream_unavailable'],
  ['sends choices without end', 'plain', rough.choicesWithoutEnd, 'upstream_unavailable'],
  ['sends tool calls without end', 'plain', rough.toolCallsWithoutEnd, 'upstream_unavailable'],
];

describe('after its first content an upstream that', () => {
  test.each(afterContent)(
    '%s ends the stream with an error chunk and [DONE]',
    async (_name, kind, script, code) => {
      upstream.script(script);
      const { status, text } = await answer(kind, true);
      expect(status).toBe(200);
      expect(brokenStreamOf(text)).toBe(code);
    },
  );

  test.each(afterContent)(
    '%s passes its real status to a call without a stream',
    async (_name, kind, script, code) => {
      upstream.script(script);
      const { status, text } = await answer(kind, false);
      expectErrorBody(text, 'upstream_error', code);
      expect(status).toBe(code === 'upstream_timeout' ? 504 : 502);
    },
  );

  test('resets the connection ends the stream with an error chunk and [DONE]', async () => {
    const wordsRead = Promise.withResolvers<void>();
    upstream.script(async (_call, reply) => {
      await reply.data(chunk({ role: 'assistant', content: 'one two' }));
      // A reset discards data that the other side has not read yet.
      await wordsRead.promise;
      reply.reset();
    });
    const text = await readStream('plain', wordsRead.resolve);
    expect(brokenStreamOf(text)).toBe('upstream_unavailable');
  });

  test.each(Object.keys(rawBreaks) as (keyof typeof rawBreaks)[])(
    '%s ends the stream with an error chunk and [DONE]',
    async (name) => {
      const wordsRead = Promise.withResolvers<void>();
      raw.script(breaksAfterWords(rawBreaks[name], wordsRead.promise));
      const text = await readStream('raw', wordsRead.resolve);
      expect(brokenStreamOf(text)).toBe('upstream_unavailable');
    },
  );
});

/** Reads a streamed answer to its end, and calls back at its first words. */
async function readStream(kind: Kind, onWords: () => void): Promise<string> {
  const response = await stack.post(call(modelOf(kind), true));
  expect(response.status).toBe(200);
  let text = '';
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.includes('one two')) onWords();
  }
  await expectAlive();
  return text;
}

/** The code of the error that ends the stream: the words arrive first; the error chunk is last and has no choices. */
function brokenStreamOf(text: string): unknown {
  const frames = framesOf(text);
  const last = frames.pop();
  expect(streamedText(frames)).toMatch(/^(one|x|$)/);
  expect(frames.filter((frame) => 'error' in frame)).toEqual([]);
  expect(last).toMatchObject({ object: 'chat.completion.chunk', error: { type: 'upstream_error' } });
  expect(last).not.toHaveProperty('choices');
  const error = last?.['error'] as Record<string, unknown>;
  expect(Object.keys(error).toSorted()).toEqual(['code', 'message', 'param', 'type']);
  return error['code'];
}
