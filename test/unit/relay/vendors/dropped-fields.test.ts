/** The fields named in x-relay-dropped, and those repeated in a Responses answer, for any upstream. */
import { describe, expect, it } from 'vitest';
import { createPseudonym } from '../../../../shared/adapters/system/node-ports.ts';
import { asRecord, valueAt } from '../../../../shared/wire/json.ts';
import { BillingRig, yuan } from '../../../support/billing-rig.ts';
import { CoreRig } from '../../../support/core-rig.ts';

const documents: Record<string, object> = {
  chat: { choices: [{ index: 0, message: { content: 'whole' }, finish_reason: 'stop' }] },
  messages: {
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'whole' }],
    stop_reason: 'end_turn',
  },
  responses: {
    object: 'response',
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'whole' }] }],
  },
};

const upstreams: [string, string, Record<string, unknown>][] = [
  ['a chat server', 'chat', {}],
  ['a chat server with a few fields', 'chat', { type: 'gemini' }],
  ['a Responses server', 'responses', { dialect: 'responses' }],
  ['a Messages server', 'messages', { dialect: 'messages' }],
  ['a thinking Claude', 'messages', { dialect: 'messages', mapper: { m: 'claude-opus-5-5' } }],
  ['a sampling Claude', 'messages', { dialect: 'messages', mapper: { m: 'claude-haiku-4-5' } }],
];

async function answered(dialect: string, row: object, body: object, path = '/v1/responses') {
  const rig = new CoreRig({ channels: [{ ...row }] });
  rig.upstream({ steps: [JSON.stringify(documents[dialect])] });
  const conversation =
    path === '/v1/responses' ? { input: 'hi' } : { messages: [{ role: 'user', content: 'hi' }] };
  const answer = await rig.post({ model: 'm', ...conversation, ...body }, { path });
  expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, '']);
  return {
    echo: asRecord(JSON.parse(answer.text)),
    sent: JSON.stringify(rig.sent.at(-1)?.json),
    dropped: (answer.headers['x-relay-dropped'] ?? '').split(', ').filter((name) => name !== ''),
    headers: answer.headers,
  };
}

const look = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} } };
const wide = { tools: [look, { type: 'function', name: 'other', parameters: {} }] };

interface Repeated {
  field: string;
  asked: Record<string, unknown>;
  value: unknown;
  /** The repeated value if the field was not sent. */
  usual: unknown;
  /** A pattern that finds the field in a request. */
  sign?: string | undefined;
  /** Its path in the answer, if it differs from the field. */
  at?: string[] | undefined;
}
const one = (field: string, value: unknown, usual: unknown, more: Partial<Repeated> = {}): Repeated => ({
  field,
  asked: { [field]: value },
  value,
  usual,
  ...more,
});
const pseudonym = (name: string) => ({ sign: createPseudonym('test')('acme', name) });
const chosen = { type: 'function', name: 'look' };

/** Values that occur nowhere else in a request. */
const repeated: Repeated[] = [
  one('temperature', 0.37, 1),
  one('top_p', 0.41, 1),
  one('presence_penalty', 0.43, 0),
  one('frequency_penalty', 0.47, 0),
  one('metadata', { a: 'meta-x' }, {}),
  one('prompt_cache_key', 'key-x', null, pseudonym('key-x')),
  one('safety_identifier', 'id-x', null, pseudonym('id-x')),
  one('top_logprobs', 7, 0, { sign: '"top_logprobs":7' }),
  one('max_tool_calls', 77, null),
  one('truncation', 'auto', 'disabled'),
  one('reasoning_effort', 'high', null, {
    asked: { reasoning: { effort: 'high' } },
    at: ['reasoning', 'effort'],
    sign: '"high"|"budget_tokens"',
  }),
  one('verbosity', 'low', undefined, {
    asked: { text: { verbosity: 'low' } },
    at: ['text', 'verbosity'],
    sign: '"verbosity":"low"',
  }),
  one('parallel_tool_calls', false, true, {
    asked: { ...wide, parallel_tool_calls: false },
    sign: '"parallel_tool_calls":false|"disable_parallel_tool_use":true',
  }),
  one('tools', 'web_search', undefined, {
    asked: { tools: [look, { type: 'web_search' }] },
    at: ['tools', '1', 'type'],
  }),
  one('tool_choice', chosen, 'auto', {
    asked: { ...wide, tool_choice: chosen },
    sign: '"tool_choice":\\{',
  }),
];

describe.each(upstreams)('a call to %s', (_name, dialect, row) => {
  it.each(repeated)('repeats $field in its answer exactly if it was sent', async (asks) => {
    const { field, asked, at = [field], value, usual, sign } = asks;
    const { echo, sent, dropped, headers } = await answered(dialect, row, asked);
    const wasSent = sign === undefined ? sent.includes(JSON.stringify(value)) : new RegExp(sign).test(sent);
    const path = at.map((step) => (/^\d+$/.test(step) ? Number(step) : step));
    expect(valueAt(echo, path)).toEqual(wasSent ? value : usual);
    // A changed tool choice has its own header.
    const isNamed = dropped.includes(field) || headers['x-relay-tool-choice'] !== undefined;
    expect(isNamed).toBe(!wasSent);
  });

  const names = ['user', 'safety_identifier', 'prompt_cache_key', 'user_id', 'session_id'];
  it.each(['/v1/responses', '/v1/chat/completions'])(
    'sends no end user name in plain form, from %s',
    async (path) => {
      const own = Object.fromEntries(names.map((name) => [name, `mine-${name}`]));
      const metadata = { user_id: 'mine-too', order: 'no name' };
      const { sent, dropped } = await answered(
        dialect,
        row,
        { ...own, metadata, user_id: { mine: 1 } },
        path,
      );
      expect(sent).not.toContain('mine');
      const known = createPseudonym('test')('acme', 'mine-too');
      if (dialect === 'messages') expect(sent).toContain(`"metadata":{"user_id":"${known}"}`);
      else if (!dropped.includes('metadata')) expect(sent).toContain(`"user_id":"${known}"`);
    },
  );

  it('names no field that changes nothing or that the relay handles itself', async () => {
    const asked = {
      reasoning: { summary: 'auto', context: 'all_turns' },
      include: ['reasoning.encrypted_content'],
      store: false,
      stream: false,
      stream_options: null,
      truncation: 'disabled',
      client_metadata: { session: 's' },
      presence_penalty: 0,
      frequency_penalty: 0,
      top_logprobs: 0,
      metadata: {},
      background: false,
      service_tier: 'auto',
      tool_choice: 'auto',
      parallel_tool_calls: true,
    };
    expect((await answered(dialect, row, asked)).dropped).toEqual([]);
  });
});

describe('a chat call', () => {
  const hi = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
  const whole = (usage: object) => ({ steps: [JSON.stringify({ ...documents['chat'], usage })] });
  const rigOf = (params: object, usage: object = {}): BillingRig =>
    new BillingRig({ channels: [{ params }] }).upstream(whole(usage)).granted(10_000n * yuan);

  it('does not send gateway settings upstream, and names them', async () => {
    const steering = {
      api_base: 'https://evil.example',
      API_KEY: 'sk-x',
      fallbacks: ['gpt-5'],
      Model: 'gpt-5',
    };
    const rig = rigOf({});
    const answer = await rig.call({ ...hi, ...steering, min_p: 1 });
    expect(answer.headers['x-relay-dropped']).toBe('api_base, API_KEY, fallbacks, Model');
    expect(Object.keys(asRecord(rig.sent[0]?.json))).toEqual([
      'model',
      'messages',
      'min_p',
      'max_tokens',
      'stream',
      'stream_options',
    ]);
  });

  it("with a file of the operator's organisation is rejected unless the row allows it", async () => {
    const content = [{ type: 'file', file: { file_id: 'file-of-another-tenant' } }];
    const asked = { ...hi, messages: [{ role: 'user', content }] };
    // The balance would not cover the largest file, but the file is rejected first.
    const rig = new BillingRig({ channels: [{}] }).granted(yuan);
    const answer = await rig.call(asked);
    expect([answer.status, rig.sent.length, rig.item?.spent]).toEqual([400, 0, 0n]);
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { type: 'invalid_request_error', param: 'messages[0].content[0].file.file_id' },
    });
    const allowing = rigOf({ allow: ['file_id'] });
    expect([(await allowing.call(asked)).status, allowing.sent.length]).toEqual([200, 1]);
  });

  it('names dropped media of an unknown form by their path', async () => {
    const images = ['https://a.test/1', 'https://a.test/2'];
    const part = { type: 'text', text: 'hi', image_url: { url: 'https://a.test/3' } };
    const asked = { messages: [{ role: 'user', content: [part], images }] };
    const path = '/v1/chat/completions';
    const { sent, dropped } = await answered('messages', { dialect: 'messages' }, asked, path);
    expect(sent).not.toContain('a.test');
    expect(dropped).toEqual(['messages[].content[].image_url.url', 'messages[].images[]']);
    expect((await answered('chat', {}, asked, path)).dropped).toEqual([]);
  });

  it.each([
    [[], 'output:high', undefined],
    [['reasoning.mode'], undefined, 'pro'],
  ])(
    'sends a field that multiplies the price only with %j, and then believes its high count',
    async (allow, flag, mode) => {
      const rig = rigOf({ allow }, { prompt_tokens: 7, completion_tokens: 4_000 });
      await rig.call({ ...hi, max_tokens: 700, reasoning: { mode: 'pro' } });
      expect(asRecord(asRecord(rig.sent[0]?.json)['reasoning'])['mode']).toBe(mode);
      expect(rig.item?.last?.flag).toBe(flag);
    },
  );
});
