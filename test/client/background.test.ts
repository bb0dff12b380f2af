/** Background responses by the official client, on the running stack: polled, streamed, resumed, cancelled, deleted. */
import OpenAI from 'openai';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { textStream, textThenSilence } from '../support/upstream-scripts.ts';
import { models, clientStack, storingKeys } from './client-stack.ts';

let stack: Awaited<ReturnType<typeof clientStack>>;
let client: OpenAI;

beforeAll(async () => {
  stack = await clientStack();
  client = stack.client({ apiKey: storingKeys.own });
});
beforeEach(() => {
  stack.upstream.forget();
  stack.upstream.script(textStream('It is sunny.'));
});

const model = models.scripted;
const create = (input: string, more: { previous_response_id?: string } = {}): Promise<Response> =>
  client.responses.create({ model, input, background: true, ...more });

/** Polls as in OpenAI's guide. */
async function ended(response: Response): Promise<Response> {
  let now = response;
  while (now.status === 'queued' || now.status === 'in_progress') {
    await new Promise((resolve) => setTimeout(resolve, 100));
    now = await client.responses.retrieve(response.id);
  }
  return now;
}

/** An upstream answer that continues when the test releases it. */
function heldAnswer() {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  stack.upstream.script(async (_call, reply) => {
    await reply.data(chunk({ role: 'assistant', content: 'It ' }));
    await released;
    await reply.data(
      chunk({ content: 'is ' }),
      chunk({ content: 'sunny.' }),
      chunk({}, 'stop'),
      usageChunk(),
      '[DONE]',
    );
    reply.end();
  });
  return release;
}

test('is accepted as queued, and is complete after polling', async () => {
  const accepted = await create('How is it?');
  expect(accepted).toMatchObject({ status: 'queued', background: true, output: [] });
  const whole = await ended(accepted);
  expect(whole).toMatchObject({ id: accepted.id, status: 'completed', output_text: 'It is sunny.' });
  expect(stack.upstream.requests).toHaveLength(1);
});

test('continues a response, and can be continued after its end', async () => {
  const first = await client.responses.create({ model, input: 'one' });
  const release = heldAnswer();
  const second = await create('two', { previous_response_id: first.id });
  await expect(create('three', { previous_response_id: second.id })).rejects.toMatchObject({
    status: 400,
    param: 'previous_response_id',
  });
  release();
  await ended(second);
  stack.upstream.script(textStream('Yes.'));
  await ended(await create('three', { previous_response_id: second.id }));
  expect(
    stack
      .sentMessages()
      .at(-1)
      ?.map(({ content }) => content),
  ).toEqual(['one', 'It is sunny.', 'two', 'It is sunny.', 'three']);
});

test('can be resumed after any cut: both parts together equal the uncut stream', async () => {
  const release = heldAnswer();
  const seen: ResponseStreamEvent[] = [];
  const stream = await client.responses.create({ model, input: 'x', background: true, stream: true });
  let id = '';
  for await (const event of stream) {
    seen.push(event);
    if (event.type === 'response.created') id = event.response.id;
    if (event.type === 'response.output_text.delta') break;
  }
  expect(seen[0]).toMatchObject({ type: 'response.created', response: { status: 'queued' } });
  const resume = async (after: number): Promise<ResponseStreamEvent[]> => {
    const rest = await client.responses.retrieve(id, { stream: true, starting_after: after });
    return Array.fromAsync(rest);
  };
  const live = resume(seen.at(-1)?.sequence_number ?? -1);
  release();
  seen.push(...(await live));
  expect(seen.map(({ sequence_number: number }) => number)).toEqual(seen.map((_, i) => i));
  expect(seen.at(-1)).toMatchObject({
    type: 'response.completed',
    response: { id, status: 'completed', usage: { output_tokens: expect.any(Number) } },
  });
  for (const [cut] of seen.entries()) expect(await resume(cut)).toEqual(seen.slice(cut + 1));
  expect(stack.upstream.requests).toHaveLength(1);
});

test('is cancelled once, and its upstream is stopped', async () => {
  stack.upstream.script(textThenSilence('It was'));
  const accepted = await create('x');
  const call = await stack.upstream.nextRequest();
  const cancelled = await client.responses.cancel(accepted.id);
  expect(cancelled).toMatchObject({ id: accepted.id, status: 'cancelled' });
  expect(await call.closed).toBe('cut');
  expect(await client.responses.cancel(accepted.id)).toMatchObject({ status: 'cancelled' });
  expect(await client.responses.retrieve(accepted.id)).toMatchObject({ status: 'cancelled' });
});

test('keeps its result if it is cancelled after its end; responses without background cannot be cancelled', async () => {
  const whole = await ended(await create('x'));
  expect(await client.responses.cancel(whole.id)).toMatchObject({
    status: 'completed',
    output: whole.output,
  });
  const { id } = await client.responses.create({ model, input: 'x' });
  await expect(client.responses.cancel(id)).rejects.toMatchObject({ status: 400 });
});

test('can be deleted while it runs, which stops its upstream', async () => {
  stack.upstream.script(textThenSilence('It was'));
  const { id } = await create('x');
  const call = await stack.upstream.nextRequest();
  await client.responses.delete(id);
  expect(await call.closed).toBe('cut');
  await expect(client.responses.retrieve(id)).rejects.toMatchObject({
    status: 404,
    code: 'response_not_found',
  });
});

test.each<[string, object, number]>([
  ['of a response that was not streamed', {}, 400],
  ['beyond its end', { starting_after: 10_000 }, 400],
])('a stream %s is rejected by name', async (_case, query, status) => {
  const isStreamed = 'starting_after' in query;
  let id: string;
  if (isStreamed) {
    const events = await Array.fromAsync(
      await client.responses.create({ model, input: 'x', background: true, stream: true }),
    );
    id = (events[0] as { response: Response }).response.id;
  } else ({ id } = await ended(await create('x')));
  await expect(client.responses.retrieve(id, { stream: true, ...query })).rejects.toMatchObject({ status });
});
