/** Parts of a request that a vendor would reject are sent in the form that it accepts. */
import { describe, expect, it } from 'vitest';
import { CoreRig } from '../../../support/core-rig.ts';
import {
  answers,
  askIn,
  block,
  callsOf,
  callsWith,
  clients,
  forms,
  rowOf,
  type Form,
} from '../../../support/three-forms.ts';

type Json = Record<string, unknown>;

async function send(
  form: Form,
  dialect: Form,
  more: Json,
): Promise<{ sent: Json; status: number; dropped: string | undefined }> {
  const { sent, answer } = await askIn(form, more, {
    channels: [rowOf(dialect)],
    steps: callsWith[dialect]('{}'),
  });
  return { sent, status: answer.status, dropped: answer.headers['x-relay-dropped'] };
}
const listOf = (sent: Json): Json[] => (sent['messages'] ?? sent['input']) as Json[];

describe('a Messages conversation sent to chat', () => {
  const call = (id: string): Json => ({ type: 'tool_use', id, name: 'f', input: {} });
  const result = (id: string, content: unknown): Json => ({ type: 'tool_result', tool_use_id: id, content });
  const data = 'iVBORw0KGgoAAAA';
  const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
  const part = { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } };

  it('keeps tool results next to their calls if a system message comes between them', async () => {
    const { sent } = await send('messages', 'chat', {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: [call('toolu_1'), call('toolu_2')] },
        { role: 'system', content: 'agents' },
        { role: 'user', content: [result('toolu_1', 'one'), result('toolu_2', 'two')] },
      ],
    });
    expect(listOf(sent).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'system']);
  });

  it('puts result images and the user’s text into one turn', async () => {
    const { sent } = await send('messages', 'chat', {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: [call('toolu_1'), call('toolu_2')] },
        {
          role: 'user',
          content: [result('toolu_1', [picture]), result('toolu_2', 'two'), { type: 'text', text: 'look' }],
        },
      ],
    });
    expect(listOf(sent).slice(2)).toEqual([
      { role: 'tool', tool_call_id: 'toolu_1', content: 'The result is in the next message.' },
      { role: 'tool', tool_call_id: 'toolu_2', content: 'two' },
      { role: 'user', content: [part, { type: 'text', text: 'look' }] },
    ]);
  });

  it('has no empty text', async () => {
    const empty = { type: 'text', text: '' };
    const { sent } = await send('messages', 'chat', {
      system: [empty],
      messages: [
        { role: 'user', content: [empty, { type: 'text', text: 'a' }] },
        { role: 'assistant', content: [empty, call('toolu_1')] },
        { role: 'user', content: [result('toolu_1', 'one'), empty] },
      ],
    });
    expect(listOf(sent)).toMatchObject([
      { role: 'user', content: [{ type: 'text', text: 'a' }] },
      { role: 'assistant', content: null },
      { role: 'tool', content: 'one' },
    ]);
    expect(listOf(sent)).toHaveLength(3);
  });
});

describe.each(forms)('a request to %s', (dialect) => {
  it('sends an image with the type of its bytes', async () => {
    const data = '/9j/4AAQSkZJRg';
    const url = `data:image/png;base64,${data}`;
    const source = { type: 'base64', media_type: 'image/png', data };
    const contents: Record<Form, Json> = {
      chat: { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] },
      messages: { messages: [{ role: 'user', content: [{ type: 'image', source }] }] },
      responses: { input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
    };
    for (const form of forms) {
      const { sent, dropped } = await send(form, dialect, contents[form]);
      const text = JSON.stringify(sent);
      expect([text.includes('image/jpeg'), text.includes('image/png'), dropped]).toEqual([
        true,
        false,
        undefined,
      ]);
    }
  });

  it.each([
    ['chat', { tool_choice: 'any' }],
    ['responses', { tool_choice: 'any' }],
    ['messages', { tool_choice: { type: 'any' } }],
  ] as const)('turns the choice of any tool by a client of %s into a forced call', async (form, more) => {
    const { sent } = await send(form, dialect, more);
    expect(sent['tool_choice']).toEqual(dialect === 'messages' ? { type: 'any' } : 'required');
  });

  it.each([
    [{ effort: 'low', exclude: true }, { exclude: true }],
    [{ effort: 'low', max_tokens: 9 }, { max_tokens: 9 }],
    [{ effort: 'low' }, undefined],
  ])('uses the effort in %o of a chat client', async (reasoning, beside) => {
    const channels = [{ ...rowOf(dialect), params: { allow: ['reasoning'] } }];
    const { sent } = await askIn('chat', { reasoning }, { channels, steps: callsWith[dialect]('{}') });
    const { reasoning_effort: effort, reasoning: left, output_config: config } = sent;
    const found = {
      chat: effort,
      messages: (config as Json | undefined)?.['effort'],
      responses: (left as Json)?.['effort'],
    };
    expect(found[dialect]).toBe('low');
    if (dialect === 'chat') expect(left).toEqual(beside);
  });

  it.each(forms)(
    'gives a translated tool of a client of %s without properties an empty list',
    async (form) => {
      if (dialect === 'messages') return;
      const parameters = { type: 'object' };
      const isTranslated = form !== 'chat' || dialect !== 'chat';
      const tools: Record<Form, Json> = {
        chat: { type: 'function', function: { name: 'f', parameters } },
        messages: { name: 'f', input_schema: parameters },
        responses: { type: 'function', name: 'f', parameters },
      };
      const { sent } = await send(form, dialect, { tools: [tools[form]] });
      const [tool = {}] = sent['tools'] as Json[];
      expect(((tool['function'] ?? tool) as Json)['parameters']).toEqual({
        ...parameters,
        ...(isTranslated && { properties: {} }),
      });
    },
  );

  it('uses the plain model for the marker of a long context window', async () => {
    for (const [form, stream] of clients) {
      const { sent } = await send(form, dialect, { model: 'm[1m]', stream });
      expect(sent['model']).toBe('m');
    }
  });
});

describe('a Claude Code tool that only keeps others deferred', () => {
  const held = { name: 'DeferredToolPlaceholder', input_schema: { type: 'object' }, defer_loading: true };
  const other = { name: 'g', input_schema: { type: 'object' }, defer_loading: true };
  it.each([
    ['chat', ['g']],
    ['responses', ['g']],
    ['messages', ['DeferredToolPlaceholder', 'g']],
  ] as const)('sent to %s leaves %j', async (dialect, expected) => {
    const { sent } = await send('messages', dialect, { tools: [held, other] });
    const tools = (sent['tools'] as Json[]).map((tool) => (tool['function'] as Json | undefined) ?? tool);
    expect(tools.map(({ name }) => name)).toEqual(expected);
  });
});

describe('empty fields', () => {
  const empty: Record<Form, Json> = {
    chat: { stop: [''], tool_choice: '', user: '', service_tier: '', response_format: '' },
    messages: { system: '', stop_sequences: [], service_tier: '', tool_choice: '' },
    responses: { instructions: '', stop: [], user: '', truncation: '', previous_response_id: '' },
  };
  it.each(forms)('of a client of %s are not sent', async (form) => {
    for (const dialect of forms) {
      const { sent, status } = await send(form, dialect, empty[form]);
      const left = Object.entries(sent).filter(([, value]) => value === '' || JSON.stringify(value) === '[]');
      expect([status, left]).toEqual([200, []]);
    }
  });
});

describe('a template that needs the system message first', () => {
  const refusals = [
    [400, { error: { message: 'System message must be at the beginning.', code: 400 } }],
    [500, { error: 'System message must be at the beginning.' }],
    [500, { error: { code: 500, message: 'Jinja Exception: only one system message' } }],
  ] as const;
  const messages = [
    { role: 'user', content: 'a' },
    { role: 'system', content: 'agents' },
    { role: 'user', content: 'b' },
  ];
  it.each(refusals)('and rejects with %i is retried, and the relay remembers', async (status, error) => {
    const rig = new CoreRig().upstream(
      { status, steps: [JSON.stringify(error)] },
      { steps: callsWith.chat('{}') },
    );
    expect((await rig.post({ model: 'm', messages })).status).toBe(200);
    expect(listOf(rig.sent[1]?.json ?? {}).map(({ role }) => role)).toEqual(['system', 'user', 'user']);
    expect(rig.learned.written.map(({ fact }) => fact)).toEqual(['system:first']);
    expect(rig.health.writes).toEqual([]);
  });

  it('is not retried if a 500 has another cause or no system message comes later', async () => {
    for (const [turns, error] of [
      [messages, { error: 'out of memory' }],
      [messages.slice(0, 1), { error: 'System message must be at the beginning.' }],
    ] as const) {
      const rig = new CoreRig().upstream({ status: 500, steps: [JSON.stringify(error)] });
      expect((await rig.post({ model: 'm', messages: turns })).status).toBe(502);
      expect(rig.sent).toHaveLength(1);
    }
  });
});

describe('state of another vendor', () => {
  const foreign = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAAABforeign' };
  it.each(forms)('in the reasoning of a Responses client is left out for %s and named', async (dialect) => {
    const input = [
      { role: 'user', content: 'a' },
      foreign,
      { role: 'assistant', content: 'b' },
      { role: 'user', content: 'c' },
    ];
    const { sent, status, dropped } = await send('responses', dialect, { input });
    expect([status, dropped, JSON.stringify(sent).includes('gAAAA')]).toEqual([200, 'reasoning', false]);
    expect(listOf(sent)).toHaveLength(3);
  });

  const odd = ['functions.f:0', 'a|b', 'x'.repeat(80)];
  const turns = (ids: readonly string[]): Json[] => [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: ids.map((id) => ({ type: 'tool_use', id, name: 'f', input: {} })) },
    { role: 'user', content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'r' })) },
  ];
  const idsOf = (sent: Json): unknown[][] =>
    listOf(sent)
      .filter(({ content }) => Array.isArray(content))
      .map(({ content }) => (content as Json[]).map(({ id, tool_use_id: of }) => id ?? of));

  it('in ids that a Messages vendor rejects becomes valid ids, the same in each turn', async () => {
    const first = await send('messages', 'messages', { messages: turns(odd) });
    const [calls = [], results] = idsOf(first.sent);
    expect(results).toEqual(calls);
    expect(new Set(calls).size).toBe(odd.length);
    for (const id of calls) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    const second = await send('messages', 'messages', { messages: [...turns(odd), ...turns(['toolu_1'])] });
    expect(idsOf(second.sent)[0]).toEqual(calls);
  });

  it('in an id from a Messages vendor is hidden from the client and restored for the vendor', async () => {
    const start = { type: 'tool_use', id: 'functions.f:0', name: 'f', input: {} };
    const steps = answers.messages(block(0, start), 'tool_use');
    for (const stream of [true, false]) {
      const { answer } = await askIn('messages', { stream }, { channels: [rowOf('messages')], steps });
      const [{ id } = { id: '' }] = callsOf('messages', answer, stream);
      expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      const { sent } = await send('messages', 'messages', { messages: turns([id]) });
      expect(idsOf(sent)).toEqual([['functions.f:0'], ['functions.f:0']]);
    }
  });

  it.each([
    ['Tool call id was functions.f:0 but must be a-z, A-Z, 0-9, with a length of 9.', /^[a-zA-Z0-9]{9}$/],
    ["messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", /^[a-zA-Z0-9_-]+$/],
    [
      "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40",
      /^.{1,40}$/,
    ],
  ])(
    'in ids that a chat server rejects (%s) is rewritten, and the relay remembers',
    async (message, wanted) => {
      const rig = new CoreRig();
      rig.upstream(
        { status: 400, steps: [JSON.stringify({ error: { message } })] },
        { steps: callsWith.chat('{}') },
      );
      const asked = { model: 'm', max_tokens: 9, messages: turns([`functions.f:0${'x'.repeat(45)}`]) };
      for (const calls of [2, 3]) {
        expect((await rig.post(asked, { path: '/v1/messages' })).status).toBe(200);
        expect(rig.sent).toHaveLength(calls);
        const [, answer = {}, result] = listOf(rig.sent.at(-1)?.json ?? {});
        const [call] = answer['tool_calls'] as Json[];
        expect(call?.['id']).toMatch(wanted);
        expect(result?.['tool_call_id']).toBe(call?.['id']);
      }
    },
  );

  it('in signed thinking is left out of a retry if the vendor rejects it, even with one candidate', async () => {
    const thinking = { type: 'thinking', thinking: 'hm', signature: 'of-another' };
    const messages = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: [thinking, { type: 'text', text: 'b' }] },
      { role: 'user', content: 'c' },
    ];
    const error = {
      type: 'invalid_request_error',
      message: 'messages.1.content.0: Invalid `signature` in `thinking` block',
    };
    const rig = new CoreRig({ channels: [rowOf('messages')] });
    rig.upstream(
      { status: 400, steps: [JSON.stringify({ type: 'error', error })] },
      { steps: callsWith.messages('{}') },
    );
    const answer = await rig.post({ model: 'm', max_tokens: 9, messages }, { path: '/v1/messages' });
    expect([answer.status, answer.headers['x-relay-dropped']]).toEqual([200, 'reasoning']);
    expect(listOf(rig.sent[1]?.json ?? {})[1]).toEqual({
      role: 'assistant',
      content: [{ type: 'text', text: 'b' }],
    });
  });
});
