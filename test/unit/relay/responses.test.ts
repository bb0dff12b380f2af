import { describe, expect, it } from 'vitest';
import { CoreRig, data, delta, done, finish, hello, keyRow, usage } from '../../support/core-rig.ts';
import type { Answer, RigOptions, Step } from '../../support/core-rig.ts';

const path = '/v1/responses';
const ask = { model: 'm', input: 'hi' };
const tokenCharge = { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2 };

interface Asked {
  rig: CoreRig;
  answer: Answer;
}

async function asked(body: object, steps: Step[], options?: RigOptions, more: object = {}): Promise<Asked> {
  const rig = new CoreRig(options).upstream({ steps });
  rig.quotas.grant('acme', 1_000_000_000_000n);
  return { rig, answer: await rig.post(body, { path, ...more }) };
}

async function responseTo(
  body: object,
  steps: Step[],
  options?: RigOptions,
): Promise<Record<string, unknown>> {
  return JSON.parse((await asked(body, steps, options)).answer.text);
}

const patient = { channels: [{ first_content_seconds: 300, idle_seconds: 300 }] };

describe('the response object', () => {
  it('has no completion time if the answer was cut short', async () => {
    const response = await responseTo(ask, [delta('Hel'), finish('length'), usage(7, 2), done]);
    expect(response).toMatchObject({
      status: 'incomplete',
      completed_at: null,
      incomplete_details: { reason: 'max_output_tokens' },
    });
  });

  it('shows the cost of the call only in official mode', async () => {
    const options = {
      charges: [tokenCharge],
      keys: { 'sk-test': { row: keyRow({ official: true }) } },
    };
    const steps = [delta('x'), finish(), usage(1000, 500), done];
    expect(await responseTo({ ...ask, model: 'm-official' }, steps, options)).toMatchObject({ quota: 2 });
    expect(await responseTo(ask, steps, options)).not.toHaveProperty('quota');
    const { answer } = await asked({ ...ask, official: true, stream: true }, steps, options);
    expect(answer.text.match(/"quota":2\b/g)).toHaveLength(1);
  });
});

describe('a Responses call', () => {
  it('sends one request in chat form, with its limit in the channel’s field', async () => {
    const tools = [{ type: 'web_search' }, { type: 'function', name: 'look', parameters: {} }];
    const body = { ...ask, instructions: 'Be brief.', max_output_tokens: 50, tools };
    const channels = [{ max_tokens_field: 'max_completion_tokens', mapper: { m: 'upstream-m' } }];
    const { rig } = await asked(body, hello, { channels });
    expect(rig.sent.map(({ url, json }) => ({ url, json }))).toEqual([
      {
        url: 'https://upstream.test/v1/chat/completions',
        json: {
          model: 'upstream-m',
          messages: [
            { role: 'system', content: 'Be brief.' },
            { role: 'user', content: 'hi' },
          ],
          tools: [{ type: 'function', function: { name: 'look', parameters: {} } }],
          tool_choice: 'auto',
          max_completion_tokens: 50,
          stream: true,
          stream_options: { include_usage: true },
        },
      },
    ]);
    expect(rig.logged).toMatchObject([{ endpoint: 'responses', dropped_tools: 1, end: 'completed' }]);
  });
});

describe('an image in a Responses answer', () => {
  it.each([false, true])('is rejected before a charge (stream: %s)', async (stream) => {
    const body = { ...ask, stream };
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } };
    const steps = [data({ choices: [{ index: 0, delta: { images: [image] } }] }), ...hello];
    const { rig, answer } = await asked(body, steps, { charges: [tokenCharge] });
    expect({ status: answer.status, ...JSON.parse(answer.text).error }).toMatchObject({
      status: 400,
      code: 'unsupported_output',
      param: 'model',
    });
    expect(rig.quotas.items.get('acme')).toMatchObject({ spent: 0n });
  });
});

describe('the status of a Responses stream', () => {
  it('is sent with the first reasoning, whose text is hidden unless requested', async () => {
    const think = data({ choices: [{ index: 0, delta: { reasoning_content: 'Hm.' } }] });
    const steps = [5_000, think, 30_000, delta('4'), finish(), usage(7, 2), done];
    const { answer } = await asked({ ...ask, stream: true }, steps);
    expect(answer.text).not.toContain('Hm.');
    const [first, second, third] = answer.said;
    expect(first).toMatchObject({ atMs: 5_000 });
    expect(first?.text).toMatch(/^event: response\.created\n.*\n\nevent: response\.in_progress\n.*\n\n$/);
    expect(second).toEqual({ atMs: 20_000, text: ': ping\n\n' });
    expect(third).toMatchObject({ atMs: 35_000 });
  });

  it('is sent after 20 s of silence with two events; then a ping every 15 s and an event a minute', async () => {
    const steps = [100_000, delta('x'), finish(), usage(7, 2), done];
    const { answer } = await asked({ ...ask, stream: true }, steps, patient);
    const said = answer.said.map(({ atMs, text }) => ({
      atMs,
      kinds: text.match(/^: ping|(?<=^event: ).*/gm),
    }));
    expect(said.slice(0, 6)).toEqual([
      { atMs: 20_000, kinds: ['response.created', 'response.in_progress'] },
      { atMs: 35_000, kinds: [': ping'] },
      { atMs: 50_000, kinds: [': ping'] },
      { atMs: 65_000, kinds: [': ping'] },
      { atMs: 80_000, kinds: ['response.in_progress'] },
      { atMs: 95_000, kinds: [': ping'] },
    ]);
    expect(said[6]).toMatchObject({ atMs: 100_000, kinds: { 0: 'response.output_item.added' } });
  });
});

describe('a Responses request that the upstream finds too large', () => {
  it.each([true, false])(
    'is rejected with 400 and a code that makes agents compact (stream: %s)',
    async (stream) => {
      const rig = new CoreRig({}).upstream({ status: 413, steps: ['{"error":{"message":"too large"}}'] });
      const answer = await rig.post({ ...ask, stream }, { path: '/v1/responses' });
      expect({ status: answer.status, error: JSON.parse(answer.text).error }).toMatchObject({
        status: 400,
        error: { code: 'context_length_exceeded', type: 'invalid_request_error' },
      });
      expect(rig.health.writes).toEqual([]);
    },
  );
});
