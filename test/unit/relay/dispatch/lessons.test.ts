/** Refusals teach the quirks of an unknown model: one retry, then no refused call for an hour. */
import { describe, expect, it } from 'vitest';
import { CoreRig } from '../../../support/core-rig.ts';

type Body = Record<string, unknown>;
/** The error of a request that breaks a rule. */
type Rule = (body: Body) => object | false;

const chatAnswer = {
  id: 'x',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 1 },
};
const messagesAnswer = {
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'hello' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 5, output_tokens: 1 },
};

/** A server with rules, the requests that it got, and the facts that the core learned. */
function served(row: object, rules: readonly Rule[]) {
  const sent: { status: number; body: Body }[] = [];
  const rig = new CoreRig({
    channels: [{ ...row, params: { stream: false, ...(row as { params?: object }).params } }],
    async send(request) {
      const body = JSON.parse(request.body) as Body;
      const error = rules.map((rule) => rule(body)).find((found) => found !== false);
      const answer = request.url.endsWith('/messages') ? messagesAnswer : chatAnswer;
      sent.push({ status: error ? 400 : 200, body });
      const text = JSON.stringify(error ? { error } : answer);
      const headers = { 'content-type': 'application/json' };
      return {
        status: error ? 400 : 200,
        headers,
        body: (async function* () {
          yield new TextEncoder().encode(text);
        })(),
      };
    },
  });
  return { rig, sent, facts: () => rig.learned.written.map(({ fact }) => fact) };
}

const has = (body: Body, field: string): boolean => body[field] !== undefined;
const openai = (message: string, param: string | null, code: string | null): object => ({
  message,
  type: 'invalid_request_error',
  param,
  code,
});
const anthropic = (message: string): object => ({ type: 'invalid_request_error', message });

const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
const tool = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } };
const other = {
  type: 'function',
  function: { name: 'leap', parameters: { type: 'object', properties: {} } },
};
const forced = {
  ...ask,
  tools: [tool, other],
  tool_choice: { type: 'function', function: { name: 'look' } },
};
const chat = { mapper: { m: 'nova-1' } };
const claude = { type: 'anthropic', endpoint: 'https://up.test/v1', mapper: { m: 'nova-1' } };
const typeOf = (value: unknown): unknown => (value as Body | undefined)?.['type'];
const effortOf = (body: Body): unknown => (body['output_config'] as Body | undefined)?.['effort'];

const cases: [
  name: string,
  row: object,
  request: object,
  rule: Rule,
  fact: string,
  ...fields: [string, unknown][],
][] = [
  [
    'efforts, as a typed server lists them',
    chat,
    { ...ask, reasoning_effort: 'low' },
    ({ reasoning_effort: effort }) =>
      effort === 'low' &&
      openai(
        'reasoning_effort: unknown variant `low`, expected one of `high`, `max` at line 1 column 85',
        null,
        null,
      ),
    'efforts:high+max',
    ['reasoning_effort', 'high'],
  ],
  [
    'efforts, as Messages lists them',
    claude,
    { ...ask, reasoning_effort: 'xhigh' },
    (body) =>
      effortOf(body) === 'xhigh' &&
      anthropic("output_config.effort: Input should be 'low', 'medium', 'high' or 'max'"),
    'efforts:low+medium+high+max',
    ['output_config', { effort: 'high' }],
  ],
  [
    'efforts, as a validator lists them before the refused value',
    chat,
    { ...ask, reasoning_effort: 'max' },
    ({ reasoning_effort: effort }) =>
      effort === 'max' &&
      openai(
        `[{'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': "Input should be 'low', 'medium' or 'high'", 'input': 'max', 'ctx': {'expected': "'low', 'medium' or 'high'"}}]`,
        null,
        null,
      ),
    'efforts:low+medium+high',
    ['reasoning_effort', 'high'],
  ],
  [
    'efforts, without words from the following sentences',
    chat,
    { ...ask, reasoning_effort: 'xhigh' },
    ({ reasoning_effort: effort }) =>
      effort === 'xhigh' &&
      openai(
        "Unsupported value: 'reasoning_effort' does not support 'xhigh'. Supported values for nova-1 are: 'low', 'medium', and 'high'. Latency is low with none.",
        'reasoning_effort',
        'unsupported_value',
      ),
    'efforts:low+medium+high',
    ['reasoning_effort', 'high'],
  ],
  ...(
    [
      ['reasoning_effort', 'unsupported_value', "the 'nova-1' model", "'medium', 'high', and 'max'"],
      ['reasoning.effort', 'unsupported_value', 'this model', "'high' and 'max'"],
      ['reasoning.effort', null, "the 'nova-1-2026-11-05-preview-of-a-model' model", "'high'"],
    ] as const
  ).map(([param, code, model, list]): (typeof cases)[number] => [
    `efforts, as OpenAI lists them for ${model} as ${list}`,
    chat,
    { model: 'm', messages: [{ role: 'user', content: "is 'low' supported?" }], reasoning_effort: 'low' },
    ({ reasoning_effort: effort }) =>
      effort === 'low' &&
      openai(
        `Unsupported value: 'low' is not supported with ${model}. Supported values are: ${list}.`,
        param,
        code,
      ),
    `efforts:${list
      .match(/[a-z]{3,}/g)
      ?.filter((word) => word !== 'and')
      .join('+')}`,
    ['reasoning_effort', list.split("'")[1]],
  ]),
  ...['`low` or `high`', '`low`'].map((list): (typeof cases)[number] => [
    `efforts, as a typed server lists ${list}`,
    chat,
    { ...ask, reasoning_effort: 'medium' },
    ({ reasoning_effort: effort }) =>
      effort === 'medium' &&
      openai(
        `Failed to deserialize the JSON body into the target type: reasoning_effort: unknown variant \`medium\`, expected ${list} at line 1 column 200`,
        null,
        'invalid_request_error',
      ),
    `efforts:${list.match(/(?:low|high)/g)?.join('+')}`,
    ['reasoning_effort', 'low'],
  ]),
  [
    'that a typed server does not support efforts',
    chat,
    { ...ask, reasoning_effort: 'high' },
    (body) =>
      has(body, 'reasoning_effort') &&
      openai('unknown field `reasoning_effort`, expected one of `model`, `messages`', null, null),
    'efforts:',
    ['reasoning_effort', undefined],
  ],
  [
    'that it does not support efforts',
    claude,
    { ...ask, reasoning_effort: 'high' },
    (body) => effortOf(body) !== undefined && anthropic('This model does not support the effort parameter.'),
    'efforts:',
    ['output_config', undefined],
  ],
  [
    'that it does not support efforts, by fields only',
    chat,
    { ...ask, reasoning_effort: 'high' },
    (body) => has(body, 'reasoning_effort') && openai('no', 'reasoning_effort', 'unsupported_parameter'),
    'efforts:',
    ['reasoning_effort', undefined],
  ],
  [
    'that it refuses sampling',
    chat,
    { ...ask, temperature: 0.5 },
    (body) =>
      has(body, 'temperature') &&
      openai(
        "Unsupported value: 'temperature' does not support 0.5 with this model.",
        'temperature',
        'unsupported_value',
      ),
    'sampling:none',
    ['temperature', undefined],
  ],
  [
    'that it refuses top_k',
    chat,
    { ...ask, top_k: 5 },
    (body) => has(body, 'top_k') && openai('no', 'top_k', 'unsupported_parameter'),
    'sampling:none',
    ['top_k', undefined],
  ],
  [
    'that it refuses sampling, without a code',
    chat,
    { ...ask, temperature: 0.5 },
    (body) =>
      has(body, 'temperature') &&
      openai("Unsupported parameter: 'temperature' is not supported with this model.", 'temperature', null),
    'sampling:none',
    ['temperature', undefined],
  ],
  [
    'that sampling is deprecated',
    claude,
    { ...ask, temperature: 0.5 },
    (body) => has(body, 'temperature') && anthropic('`temperature` is deprecated for this model.'),
    'sampling:none',
    ['temperature', undefined],
  ],
  [
    'that it accepts only one sampling field',
    chat,
    { ...ask, temperature: 0.5, top_p: 0.5 },
    (body) =>
      has(body, 'top_p') &&
      anthropic('`temperature` and `top_p` cannot both be specified for this model. Please use only one.'),
    'sampling:one',
    ['temperature', 0.5],
  ],
  [
    'that it refuses a forced call while it thinks',
    claude,
    forced,
    (body) =>
      typeOf(body['tool_choice']) === 'tool' &&
      anthropic('Thinking may not be enabled when tool_choice forces tool use.'),
    'forced_calls:false',
    ['tool_choice', undefined],
  ],
  [
    'that it refuses every forced call',
    claude,
    { ...forced, tool_choice: 'required' },
    (body) =>
      typeOf(body['tool_choice']) === 'any' &&
      anthropic('tool_choice: type "tool" and "any" are not supported for this model.'),
    'forced_calls:false',
    ['tool_choice', undefined],
  ],
  [
    'that its thinking refuses a forced call, in chat',
    chat,
    forced,
    (body) =>
      body['tool_choice'] !== 'auto' &&
      openai('Thinking mode does not support this tool_choice', null, 'invalid_request_error'),
    'forced_calls:false',
    ['tools', [tool]],
  ],
  [
    'that it supports only budgets',
    claude,
    { ...ask, reasoning_effort: 'low' },
    (body) =>
      typeOf(body['thinking']) === 'adaptive' &&
      anthropic('adaptive thinking is not supported on this model'),
    'thinking:budget',
    ['thinking', { type: 'enabled', budget_tokens: 2048 }],
  ],
  [
    'that it does not support budgets',
    { ...claude, mapper: { m: 'claude-haiku-4-5' } },
    { ...ask, reasoning_effort: 'low' },
    (body) =>
      typeOf(body['thinking']) === 'enabled' &&
      anthropic(
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
      ),
    'thinking:adaptive',
    ['output_config', { effort: 'low' }],
  ],
  [
    'that it does not think',
    claude,
    { ...ask, reasoning_effort: 'low' },
    (body) => has(body, 'thinking') && anthropic('This model does not support thinking.'),
    'thinking:none',
    ['thinking', undefined],
  ],
  [
    'that it always thinks',
    { ...claude, mapper: { m: 'claude-sonnet-5' } },
    { ...ask, reasoning_effort: 'none' },
    (body) =>
      typeOf(body['thinking']) === 'disabled' &&
      anthropic(
        '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
      ),
    'thinking_off:always',
    ['output_config', { effort: 'low' }],
  ],
  [
    'that it stops thinking only between tools',
    { ...claude, mapper: { m: 'claude-sonnet-5' } },
    { ...ask, reasoning_effort: 'none' },
    (body) =>
      typeOf(body['thinking']) === 'disabled' &&
      anthropic(
        '"thinking.type.disabled" is not supported for this model. Use "thinking.type.between_tools" instead.',
      ),
    'thinking_off:between_tools',
    ['thinking', { type: 'between_tools' }],
  ],
  [
    'that it refuses stop sequences',
    chat,
    { ...ask, stop: ['\n'] },
    (body) =>
      has(body, 'stop') &&
      openai(
        "Unsupported parameter: 'stop' is not supported with this model.",
        'stop',
        'unsupported_parameter',
      ),
    'stop:false',
    ['stop', undefined],
  ],
  ...['Model nova-1 does not support parameter stop.', 'Argument not supported on this model: stop'].map(
    (message): (typeof cases)[number] => [
      `that it refuses stop sequences, as xAI says it: ${message}`,
      chat,
      { ...ask, stop: ['END'] },
      (body) => has(body, 'stop') && openai(message, null, 'invalid-argument'),
      'stop:false',
      ['stop', undefined],
    ],
  ),
  [
    'the newer field for a limit',
    chat,
    { ...ask, max_tokens: 50 },
    (body) =>
      has(body, 'max_tokens') &&
      openai(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        'max_tokens',
        'unsupported_parameter',
      ),
    'limit_field:max_completion_tokens',
    ['max_completion_tokens', 50],
  ],
  [
    'the older field for a limit',
    chat,
    { ...ask, max_completion_tokens: 50 },
    (body) =>
      has(body, 'max_completion_tokens') &&
      openai('Unrecognized request argument supplied: max_completion_tokens', null, null),
    'limit_field:max_tokens',
    ['max_tokens', 50],
  ],
  ...(
    [
      ['max_completion_tokens', 'max_tokens'],
      ['max_tokens', 'max_completion_tokens'],
    ] as const
  ).map(([field, wanted]): (typeof cases)[number] => [
    `the field of a typed server for a limit, ${wanted}`,
    chat,
    { ...ask, [field]: 50 },
    (body) =>
      has(body, field) &&
      openai(
        `Failed to deserialize the JSON body into the target type: unknown field \`${field}\`, expected \`${wanted}\``,
        null,
        'invalid_request_error',
      ),
    `limit_field:${wanted}`,
    [wanted, 50],
  ]),
  [
    'that the last turn must be the user’s',
    chat,
    { ...ask, messages: [...ask.messages, { role: 'assistant', content: 'Well' }] },
    (body) =>
      (body['messages'] as Body[]).at(-1)?.['role'] !== 'user' &&
      openai('Requests ending with a model turn are not supported', null, null),
    'last_turn:user',
  ],
  [
    'that the system message must come first',
    chat,
    { ...ask, messages: [...ask.messages, { role: 'system', content: 'Short.' }] },
    (body) =>
      (body['messages'] as Body[]).at(-1)?.['role'] === 'system' &&
      openai('System message must be at the beginning.', null, null),
    'system:first',
  ],
];

describe('an upstream refusal teaches', () => {
  it.each(cases)('%s: one retry that the client does not see, then none', async (...one) => {
    const [, row, request, rule, fact, ...fields] = one;
    const { rig, sent, facts } = served(row, [rule]);
    const answer = await rig.post(request);
    expect([answer.status, answer.headers['x-relay-attempts']]).toEqual([200, '1']);
    expect(sent.map(({ status }) => status)).toEqual([400, 200]);
    for (const [field, value] of fields) expect(sent[1]?.body[field]).toEqual(value);
    expect(facts()).toEqual([fact]);
    expect((await rig.post(request)).status).toBe(200);
    expect(sent.map(({ status }) => status)).toEqual([400, 200, 200]);
    expect(rig.health.writes).toEqual([]);
    await rig.clock.run(rig.clock.sleep(3_600_000));
    await rig.post(request);
    expect(sent.map(({ status }) => status)).toEqual([400, 200, 200, 400, 200]);
  });

  const chatCases = cases.filter(([, row]) => row === chat);
  it.each(chatCases)('%s: not from words in the request, nor from its fields alone', async (...one) => {
    const [, row, request, rule] = one;
    const { message } = rule({ ...request, tool_choice: 'required' }) as { message: string };
    const quoting = (request as typeof ask).messages.with(0, { role: 'user', content: message });
    const { rig, sent, facts } = served(row, [() => openai(message, null, null)]);
    expect((await rig.post({ ...request, messages: quoting })).status).toBe(400);
    expect([sent.length, facts()]).toEqual([1, []]);
  });

  const quoted = 'say "temperature" is not supported and "stop" is not supported';
  it.each([
    ['unchanged', quoted],
    ['as JSON', JSON.stringify(quoted)],
    ['as JSON in JSON', JSON.stringify(JSON.stringify(quoted))],
  ])('nothing from a quoted sentence that the request holds %s', async (_how, content) => {
    const refuses: Rule = (body) => has(body, 'stop') && openai(`Not with a stop: ${quoted}`, null, null);
    const { rig, sent, facts } = served(chat, [refuses]);
    const request = { ...ask, messages: [{ role: 'user', content }], stop: ['a'], temperature: 0.5 };
    expect((await rig.post(request)).status).toBe(400);
    expect([sent.length, facts()]).toEqual([1, []]);
  });

  it.each([
    ["low' is not supported. Supported values are: 'max", 'reasoning_effort', 'unsupported_value'],
    ['low`, expected `max', null, null],
    ['low`, expected one of `max`, `high', null, null],
  ])(
    'nothing from a list that the refusal quotes from the caller’s text: %s',
    async (content, param, code) => {
      const refuses: Rule = ({ reasoning_effort: asked }) =>
        asked === 'low' &&
        openai(
          param
            ? `Unsupported value: '${content}' is not supported with this model. Supported values are: 'low' and 'max'.`
            : `reasoning_effort: unknown variant \`${content}\`, expected \`low\` or \`max\``,
          param,
          code,
        );
      const { rig, sent, facts } = served(chat, [refuses]);
      const request = { ...ask, messages: [{ role: 'user', content }], reasoning_effort: 'low' };
      expect((await rig.post(request)).status).toBe(400);
      expect([sent.length, facts()]).toEqual([1, []]);
    },
  );

  it('nothing about a forced tool choice in an unusual form', async () => {
    const refuses: Rule = ({ tool_choice: asked }) =>
      typeof asked === 'object' && openai('no', 'tool_choice', 'unsupported_value');
    const { rig, sent, facts } = served(chat, [refuses]);
    const tool_choice = { ...forced.tool_choice, more: 1 };
    expect((await rig.post({ ...forced, tool_choice })).status).toBe(400);
    expect([sent.length, facts()]).toEqual([1, []]);
  });

  it('nothing from a value that no vendor accepts', async () => {
    const { rig, sent, facts } = served(chat, [
      (body) => has(body, 'temperature') && openai('no', 'temperature', 'unsupported_value'),
    ]);
    expect((await rig.post({ ...ask, temperature: 99 })).status).toBe(400);
    expect([sent.length, facts()]).toEqual([1, []]);
  });

  it('nothing if the other form has the same bytes', async () => {
    const { rig, sent, facts } = served(chat, [
      () => anthropic('adaptive thinking is not supported on this model'),
    ]);
    expect((await rig.post(ask)).status).toBe(400);
    expect([sent.length, facts()]).toEqual([1, []]);
  });

  it('nothing if the other form is refused, too', async () => {
    const { rig, sent, facts } = served(chat, [() => openai('no', 'stop', 'unsupported_parameter')]);
    expect((await rig.post({ ...ask, stop: ['a'] })).status).toBe(400);
    expect([sent.length, facts()]).toEqual([2, []]);
  });

  it('two quirks in one call, with three requests in all', async () => {
    const rules: Rule[] = [
      (body) => has(body, 'temperature') && openai('no', 'temperature', 'unsupported_parameter'),
      (body) => has(body, 'stop') && openai('no', 'stop', 'unsupported_parameter'),
    ];
    const { rig, sent, facts } = served(chat, rules);
    const request = { ...ask, temperature: 0.1, stop: ['a'] };
    expect((await rig.post(request)).status).toBe(200);
    expect([sent.length, facts().toSorted()]).toEqual([3, ['sampling:none', 'stop:false']]);
    await rig.post(request);
    expect(sent.at(-1)?.status).toBe(200);
    expect(sent).toHaveLength(4);
  });

  it('the newest quirk of a rule, even if an older one was known', async () => {
    let efforts = '';
    const refuses: Rule = ({ reasoning_effort: effort }) =>
      !efforts.includes(String(effort)) &&
      openai(`Unsupported effort. Supported values are: ${efforts}`, 'reasoning_effort', 'unsupported_value');
    const { rig, sent } = served(chat, [refuses]);
    for (efforts of ['high', 'medium', 'high']) {
      for (const _ of [1, 2]) await rig.post({ ...ask, reasoning_effort: 'low' });
      await rig.clock.run(rig.clock.sleep(60_000));
    }
    expect(sent.map(({ status }) => status)).toEqual([400, 200, 200, 400, 200, 200, 400, 200, 200]);
  });

  it('a quirk that overrides the row for an hour', async () => {
    const row = { ...chat, params: { model_rules: { 'nova-*': { efforts: ['low', 'high'] } } } };
    const refuses: Rule = ({ reasoning_effort: effort }) =>
      effort === 'low' &&
      openai(
        "Unsupported value: 'reasoning_effort'. Supported values are: 'medium' and 'high'.",
        'reasoning_effort',
        'unsupported_value',
      );
    const { rig, sent } = served(row, [refuses]);
    await rig.post({ ...ask, reasoning_effort: 'low' });
    await rig.post({ ...ask, reasoning_effort: 'low' });
    expect(sent.map(({ body }) => body['reasoning_effort'])).toEqual(['low', 'medium', 'medium']);
    await rig.clock.run(rig.clock.sleep(3_600_000));
    await rig.post({ ...ask, reasoning_effort: 'low' });
    expect(sent[3]?.body['reasoning_effort']).toBe('low');
  });
});
