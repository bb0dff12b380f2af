/** The meaning of vendors' words at every endpoint, streamed and not: the table is shared/upstreams/vocabulary.ts. */
import { describe, expect, it } from 'vitest';
import {
  CoreRig,
  data,
  delta,
  demoKey,
  done,
  finish,
  hello,
  usage,
  type Answer,
  type RigOptions,
  type UpstreamScript,
} from '../../../support/core-rig.ts';
import { asRecord, recordsIn, type JsonRecord } from '../../../../shared/wire/json.ts';

const user = [{ role: 'user', content: 'hi' }];
const endpoints = {
  chat: { path: '/v1/chat/completions', body: { messages: user } },
  responses: { path: '/v1/responses', body: { input: 'hi', store: false } },
  messages: { path: '/v1/messages', body: { messages: user, max_tokens: 4096 } },
};
type EndpointName = keyof typeof endpoints;
const asked = (Object.keys(endpoints) as EndpointName[]).flatMap((endpoint) =>
  [true, false].map((stream) => ({ endpoint, stream })),
);

async function post(rig: CoreRig, { endpoint, stream }: (typeof asked)[number], model = 'm') {
  const { path, body } = endpoints[endpoint];
  const headers = { authorization: `Bearer ${demoKey}` };
  return rig.post({ model, stream, ...body }, { path, headers });
}

const event = (type: string, more: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
/** An answer that ends with a word, in each dialect. */
const answers: Record<EndpointName, (word: string, text?: string) => UpstreamScript> = {
  chat: (word, text = 'partial') => ({
    steps: [...(text === '' ? [] : [delta(text)]), finish(word), usage(9, 2), done],
  }),
  messages: (word, text = 'partial') => ({
    steps: [
      event('message_start', { message: { role: 'assistant', content: [], usage: { input_tokens: 9 } } }),
      ...(text === ''
        ? []
        : [
            event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
            event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
            event('content_block_stop', { index: 0 }),
          ]),
      event('message_delta', { delta: { stop_reason: word }, usage: { output_tokens: 2 } }),
      event('message_stop', {}),
    ],
  }),
  responses: (reason, text = 'partial') => {
    const content = [{ type: 'output_text', text, annotations: [] }];
    const output = text === '' ? [] : [{ type: 'message', id: 'msg_1', role: 'assistant', content }];
    const counts = { input_tokens: 9, output_tokens: 2, total_tokens: 11 };
    const response = { status: 'incomplete', incomplete_details: { reason }, output, usage: counts };
    return { steps: [event('response.incomplete', { response })] };
  },
};
const channelOf: Record<EndpointName, JsonRecord> = {
  chat: {},
  messages: { type: 'anthropic' },
  responses: { dialect: 'responses' },
};

const bodiesOf = (text: string): JsonRecord[] =>
  (text.startsWith('{') ? [text] : [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => json)).map(
    (json) => asRecord(JSON.parse(json)),
  );

/** The words by which clients distinguish finish reasons. */
function endOf({ text, status }: Answer): string {
  const bodies = bodiesOf(text);
  const responses = bodies.map((one) => asRecord(one['response'] ?? one));
  if (status >= 400 || [...bodies, ...responses].some(({ error: shown }) => Boolean(shown))) return 'error';
  const found = bodies.flatMap((one, index) => {
    const { status: whole, incomplete_details: details } = responses[index] ?? {};
    const chat = asRecord(recordsIn(one['choices'])[0])['finish_reason'];
    const said = one['stop_reason'] ?? asRecord(one['delta'])['stop_reason'];
    const isLast = one['type'] === undefined || one['type'] === 'response.completed';
    return [chat, said, isLast ? (asRecord(details)['reason'] ?? whole) : undefined].filter(Boolean);
  });
  return found.join();
}

const ends = {
  stop: ['stop', 'completed', 'end_turn'],
  length: ['length', 'max_output_tokens', 'max_tokens'],
  content_filter: ['content_filter', 'content_filter', 'refusal'],
  failed: ['error', 'error', 'error'],
};
const finishes: [EndpointName, keyof typeof ends, string][] = [
  ['chat', 'failed', 'network_error insufficient_system_resource abort ERROR error malformed_function_call'],
  [
    'chat',
    'failed',
    'USER_CANCEL timeout UNEXPECTED_TOOL_CALL malformed_model_output engine_error cancelled',
  ],
  ['chat', 'content_filter', 'sensitive RECITATION PROHIBITED_CONTENT content_filtered guardrail_intervened'],
  [
    'chat',
    'content_filter',
    'SPII BLOCKLIST IMAGE_SAFETY ERROR_TOXIC FINISH_REASON_SAFETY contentFilter MODEL_ARMOR filtered violation',
  ],
  ['chat', 'length', 'model_context_window_exceeded max_output_tokens MAX_TOKENS model_length maxTokens'],
  ['chat', 'length', 'ERROR_LIMIT repetition time_limit context_length_exceeded max_new_tokens'],
  [
    'chat',
    'stop',
    'stop eos COMPLETE STOP_SEQUENCE stop_sequence end_turn eos_token eosFound brand_new natural_language_end',
  ],
  ['messages', 'failed', 'network_error abort error insufficient_system_resource'],
  ['messages', 'content_filter', 'sensitive content_filter'],
  ['messages', 'length', 'length max_output_tokens'],
  ['messages', 'stop', 'stop'],
  ['responses', 'failed', 'network_error server_error'],
  ['responses', 'content_filter', 'content_filter sensitive guardrail_intervened'],
  ['responses', 'length', 'max_output_tokens max_tokens brand_new'],
];
const endCases = finishes.flatMap(([dialect, means, words]) =>
  words.split(' ').map((word) => ({ dialect, means, word })),
);

describe('a finish reason', () => {
  it.each(endCases)('$word of $dialect means $means for all clients', async ({ dialect, means, word }) => {
    const seen: string[] = [];
    for (const of of asked) {
      const rig = new CoreRig({ channels: [channelOf[dialect]] }).upstream(answers[dialect](word));
      const answer = await post(rig, of);
      expect(rig.faults).toEqual([]);
      // The last Responses event holds the whole answer.
      const isEarly = !of.stream || dialect === 'responses';
      expect(answer.status).toBe(means === 'failed' && isEarly ? 502 : 200);
      seen.push(endOf(answer));
    }
    expect(seen).toEqual(ends[means].flatMap((end) => [end, end]));
  });

  it.each(['chat', 'messages'] as const)(
    'that is unknown, without content, fails over in %s',
    async (dialect) => {
      const channels = [
        { ...channelOf[dialect], id: 'a', priority: 1 },
        { id: 'b', type: 'openai' },
      ];
      for (const of of asked) {
        const rig = new CoreRig({ channels }).upstream(answers[dialect]('brand_new', ''), { steps: hello });
        expect(endOf(await post(rig, of))).toBe(ends.stop[Object.keys(endpoints).indexOf(of.endpoint)]);
        expect(rig.logged[0]?.attempts).toMatchObject([
          { outcome: 'upstream_empty' },
          { outcome: 'answered' },
        ]);
      }
    },
  );

  it.each(['chat', 'messages', 'responses'] as const)(
    'that reports a failure of %s: a JSON answer fails over to the next candidate',
    async (dialect) => {
      const channels = [{ ...channelOf[dialect], id: 'a', priority: 1 }, { id: 'b' }];
      for (const endpoint of Object.keys(endpoints) as EndpointName[]) {
        const rig = new CoreRig({ channels }).upstream(answers[dialect]('network_error'), { steps: hello });
        const answer = await post(rig, { endpoint, stream: false });
        expect([answer.status, answer.text.includes('Hello')]).toEqual([200, true]);
      }
    },
  );

  it('of a Messages answer is passed on unchanged to a Messages client, even a new one', async () => {
    for (const word of ['pause_turn', 'model_context_window_exceeded', 'x_new'])
      for (const stream of [true, false]) {
        const rig = new CoreRig({ channels: [channelOf.messages] }).upstream(answers.messages(word));
        expect(endOf(await post(rig, { endpoint: 'messages', stream }))).toBe(word);
      }
  });

  it('is read from the words of the row before the table', async () => {
    const words = { finish: { 'brand_*': 'failed', network_error: 'length' } };
    for (const [word, end] of [
      ['BrandNew', 'error'],
      ['network_error', 'length'],
    ] as const) {
      const rig = new CoreRig({ channels: [{ params: { words } }] }).upstream(answers.chat(word));
      expect(endOf(await post(rig, { endpoint: 'chat', stream: true }))).toBe(end);
      expect(rig.learned.written).toEqual([]);
    }
  });
});

const refuses = (status: number, body: object | string): UpstreamScript => ({
  status,
  steps: [typeof body === 'string' ? body : JSON.stringify(body)],
});
const error = (message: string, more: object = {}) => ({
  error: { message, type: 'invalid_request_error', ...more },
});

describe('a prompt that is too long', () => {
  const said: [string, UpstreamScript][] = [
    [
      'Kimi',
      refuses(
        400,
        error('Invalid request: Your request exceeded model token limit: 262144 (requested: 270201)'),
      ),
    ],
    [
      'xAI',
      refuses(400, {
        code: 'Client specified an invalid argument',
        error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
      }),
    ],
    ['Z.ai', refuses(400, { error: { code: '1261', message: 'Prompt 超长' } })],
    ['Z.ai', refuses(400, error('tokens in request more than max tokens allowed'))],
    ['MiniMax', refuses(400, error('invalid params, context window exceeds limit (2013)'))],
    [
      'llama.cpp',
      refuses(
        400,
        error('request (70210 tokens) exceeds the available context size (65536 tokens), try increasing it'),
      ),
    ],
    ['llama.cpp', refuses(500, { error: { code: 500, message: 'x', type: 'exceed_context_size_error' } })],
    [
      'Together',
      refuses(
        400,
        error("The input (40000 tokens) is longer than the model's context length (32768 tokens)."),
      ),
    ],
    [
      'SGLang',
      refuses(400, {
        object: 'error',
        message: 'Input length (265330) exceeds the maximum allowed length (262139).',
        code: 400,
      }),
    ],
    [
      'vLLM',
      refuses(
        400,
        error('The decoder prompt (length 40210) is longer than the maximum model length of 32768.'),
      ),
    ],
    [
      'DashScope',
      refuses(
        400,
        error('<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]'),
      ),
    ],
    [
      'Copilot',
      refuses(400, {
        error: {
          message: 'prompt token count of 138898 exceeds the limit of 64000',
          code: 'model_max_prompt_tokens_exceeded',
        },
      }),
    ],
    [
      'Copilot',
      refuses(400, {
        error: { message: 'prompt token count of 65446 exceeds the limit of 64000', code: '' },
      }),
    ],
    [
      'LM Studio',
      refuses(400, {
        error: 'The number of tokens to keep from the initial prompt is greater than the context length.',
      }),
    ],
    [
      'Poolside',
      refuses(400, error('Input length 131393 exceeds the maximum allowed input length of 131040 tokens.')),
    ],
    [
      'Mistral',
      refuses(400, {
        object: 'error',
        message:
          'Prompt contains 200000 tokens and 0 draft tokens, too large for model with 131072 maximum context length',
      }),
    ],
    ['Groq', refuses(400, error('Please reduce the length of the messages or completion.'))],
    [
      'Cerebras',
      refuses(
        400,
        error(
          'Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000',
        ),
      ),
    ],
    ['Bedrock', refuses(400, { message: 'Input is too long for requested model.' })],
    [
      'SiliconFlow',
      refuses(400, {
        code: 20015,
        message: 'number of input tokens (204703) has exceeded max_prompt_tokens (202752) limit.',
        data: null,
      }),
    ],
    [
      'Cloudflare',
      refuses(400, {
        success: false,
        errors: [
          {
            code: 5021,
            message:
              'AiError: The estimated number of input and maximum output tokens (30000) exceeded this model context window limit (24000).',
          },
        ],
      }),
    ],
    [
      'text-generation-inference',
      refuses(422, {
        error: '`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens',
      }),
    ],
    ['FastAPI', refuses(400, { detail: { error: { message: 'Context length exceeded' } } })],
    [
      'Together',
      refuses(
        403,
        error('Input token count + `max_tokens` must be less than the context length of the model'),
      ),
    ],
    ['a text', refuses(400, 'prompt is too long: 202952 tokens > 200000 maximum')],
    [
      'SiliconFlow',
      refuses(400, {
        code: 20015,
        message: 'length of prompt_tokens (68957) must be less than max_seq_len (65536).',
        data: null,
      }),
    ],
    ['Baidu', refuses(400, error('the max input characters is 516096', { code: 'characters_too_long' }))],
    ['Baidu, tokens', refuses(400, error('x', { code: 'tokens_too_long' }))],
    [
      'Volcengine',
      refuses(400, {
        error: {
          code: 'InvalidParameter',
          message: 'Total tokens of image and text exceed max message tokens. Request id: 0217',
          param: 'messages',
        },
      }),
    ],
    [
      'SambaNova',
      refuses(
        400,
        error(
          'Requested generation length 1 is not possible! The provided prompt is 4309 tokens long, so generating 1 tokens requires a sequence length of 4310, but the maximum supported sequence length is just 4096!',
        ),
      ),
    ],
    [
      'Cohere',
      refuses(400, {
        id: 'x',
        message:
          'too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 130000.',
      }),
    ],
    [
      'Vertex',
      refuses(400, [
        {
          error: {
            code: 400,
            message:
              'Unable to submit request because the input token count is 1200000 but model only supports up to 1048576.',
            status: 'INVALID_ARGUMENT',
          },
        },
      ]),
    ],
    ['a Chinese gateway', refuses(400, error('请求的 token 总数超过模型最大上下文长度 32768'))],
    [
      'a vendor of OpenRouter',
      refuses(400, {
        error: {
          message: 'Provider returned error',
          code: 400,
          metadata: {
            raw: JSON.stringify(error("This model's maximum context length is 8192 tokens.")),
            provider_name: 'X',
          },
        },
      }),
    ],
    ['Cerebras without a body', refuses(413, '')],
    ['a proxy’s web page', refuses(413, '<html>413 Request Entity Too Large</html>')],
    ['an event', { steps: [data(error('prompt is too long: 202952 tokens > 200000 maximum'))] }],
  ];

  it.each(said)('in the words of %s makes every client compact', async (_who, script) => {
    for (const of of asked) {
      const rig = new CoreRig().upstream(script);
      const answer = await post(rig, of);
      const { error: shown } = JSON.parse(answer.text);
      expect(shown.code).toBe('context_length_exceeded');
      expect([400, 413, 422]).toContain(answer.status);
      if (of.endpoint === 'messages') expect(shown.message).toMatch(/prompt is too long/i);
      // If the sentence names the output limit, the request is retried without it.
      expect(rig.sent.length).toBe(
        of.endpoint === 'messages' && /max_(?:new_)?tokens/.test(shown.message) ? 2 : 1,
      );
      expect([rig.health.writes, rig.learned.written]).toEqual([[], []]);
    }
  });

  it.each([
    'temperature exceeds the limit of 2',
    'max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens',
    'The maximum tokens you requested exceeds the model limit of 4096. Try again with a lower one.',
    "Invalid schema for function 'count': 'input tokens' must be of type integer",
    'Invalid max_tokens value, the valid range of max_tokens is [1, 8192]',
    'messages.1.content.0.text: String should have at most 10 characters',
    "Invalid 'prompt_cache_key': string too long",
    'The input image is too long on one side',
    'tools.0.function.description: input exceeds nothing, but a token is missing',
    'max_completion_tokens is too large: 200000. This model supports at most 128000 completion tokens',
    'You exceeded your rate limit of input tokens per minute',
    'tools.3.input_schema: the description of the tool "summarize the conversation" is too long',
  ])('is not reported for another error: %s', async (message) => {
    const { text, status } = await post(new CoreRig().upstream(refuses(400, error(message))), asked[1]!);
    expect([status, text.includes('context_length_exceeded')]).toEqual([400, false]);
  });

  it('is reported for an alias even if its other model fails for another reason', async () => {
    const channels = ['a', 'b'].map((id) => ({ id, models: [id], endpoint: `https://${id}.test/v1` }));
    const aliases = [{ name: 'best', models: ['a', 'b'], onContextLength: true }];
    const long = refuses(400, error('prompt is too long: 202952 tokens > 200000 maximum'));
    for (const other of [
      refuses(502, ''),
      refuses(429, ''),
      refuses(401, ''),
      { connect: 'refused' as const },
    ])
      for (const of of asked) {
        const rig = new CoreRig({ channels, settings: { aliases } }).upstream(long, other);
        const { status, text } = await post(rig, of, 'best');
        expect([status, JSON.parse(text).error.code, rig.sent.length]).toEqual([
          400,
          'context_length_exceeded',
          2,
        ]);
      }
  });
});

const secret = 'xai-abcdefghijklmnop-yz';
const account: [string, UpstreamScript][] = [
  [
    'DashScope',
    refuses(400, {
      error: {
        message: 'Access denied, please make sure your account is in good standing.',
        type: 'Arrearage',
        code: 'Arrearage',
      },
    }),
  ],
  [
    'xAI, key',
    refuses(400, {
      code: 'Client specified an invalid argument',
      error: 'Incorrect API key provided: xa***yz. You can obtain an API key from https://console.x.ai.',
    }),
  ],
  [
    'xAI, credits',
    refuses(429, {
      code: 'x',
      error:
        'Your team 16f2151a-40f4-4a80-8ad0-cae00c27e8dd has either used all available credits or reached its monthly spending limit.',
    }),
  ],
  [
    'xAI, subscription',
    refuses(403, { code: 'x', error: 'You have run out of credits or need a Grok subscription.' }),
  ],
  [
    'Anthropic',
    refuses(
      400,
      error('Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.'),
    ),
  ],
  [
    'Z.ai',
    refuses(429, {
      error: { code: '1113', message: 'Insufficient balance or no resource package. Please recharge.' },
    }),
  ],
  ['Z.ai as a number', refuses(400, { error: { code: 1113, message: 'x' } })],
  ['MiniMax', refuses(400, { base_resp: { status_code: 1008, status_msg: 'insufficient balance' } })],
  [
    'MiniMax in a 200',
    {
      steps: [data({ choices: null, base_resp: { status_code: 1008, status_msg: 'insufficient balance' } })],
    },
  ],
  ['MiniMax, key', refuses(400, { base_resp: { status_code: 2049, status_msg: 'invalid api key' } })],
  ['Volcengine', refuses(403, { error: { code: 'AccountOverdueError', message: 'x' } })],
  [
    'Fireworks',
    refuses(412, error('Account acme-1 is suspended, possibly due to reaching the monthly spending limit')),
  ],
  ['SiliconFlow', refuses(400, { code: 30001, message: 'Sorry, your account balance is insufficient' })],
  [
    'Google',
    refuses(400, {
      error: { code: 400, status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }] },
    }),
  ],
  [
    'OpenAI',
    refuses(429, { error: { code: 'insufficient_quota', message: 'You exceeded your current quota' } }),
  ],
  ['Kimi', refuses(400, { error: { type: 'invalid_authentication_error', message: 'x' } })],
  [
    'Cloudflare',
    refuses(400, { success: false, errors: [{ code: 10000, message: 'Authentication error' }] }),
  ],
  ['OpenRouter', refuses(403, { error: { message: 'Key limit exceeded (total limit)', code: 403 } })],
  [
    'a gateway',
    refuses(400, { error: { error: { message: 'x', code: 'insufficient_user_quota' }, code: 402 } }),
  ],
  [
    'Anthropic, limit',
    refuses(
      400,
      error(
        'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.',
      ),
    ),
  ],
  ['Anthropic, organization', refuses(400, error('This organization has been disabled.'))],
  ['Groq', refuses(400, error('Organization has been restricted.', { code: 'organization_restricted' }))],
  ['Novita', refuses(400, { code: 400, reason: 'BILLING_BALANCE_NOT_ENOUGH', message: 'x', metadata: {} })],
  ['Novita, LLM', refuses(403, { code: 403, reason: 'NOT_ENOUGH_BALANCE', message: 'x', metadata: {} })],
  ['402', refuses(402, '')],
  ['401', refuses(401, '')],
];

describe('a refusal of our own account or key', () => {
  const two: RigOptions = {
    channels: [{ id: 'a', priority: 1, secret: 'ssm:/relay/relay/a' }, { id: 'b' }],
    secretOf: () => secret,
  };
  const one = { ...two, channels: [{ id: 'a', secret: 'ssm:/relay/relay/a' }] };

  it.each(account)(
    '%s: the next candidate answers, and the secret is put into cooldown',
    async (_who, script) => {
      for (const of of asked) {
        const rig = new CoreRig(two).upstream(script, { steps: hello });
        expect((await post(rig, of)).status).toBe(200);
        expect(rig.health.of('a|ssm:/relay/relay/a')).toMatchObject({ kind: 'credentials' });
      }
    },
  );

  it.each(account)(
    '%s: from the last candidate, it is not reported as a rate limit and shows no part of the key',
    async (_who, script) => {
      for (const of of asked) {
        const { status, text } = await post(new CoreRig(one).upstream(script), of);
        expect(status).toBe(502);
        expect(text).toContain("The relay's own account at the upstream");
        expect(text).not.toMatch(/try again in|yz|xa\*/);
      }
    },
  );

  it('is not assumed when the vendor quotes the caller’s text', async () => {
    const quoted = 'Your credit balance is too low';
    const rig = new CoreRig(two).upstream(refuses(400, error(`${quoted}: is no valid name`)), {
      steps: hello,
    });
    const answer = await rig.post({ model: 'm', messages: [{ role: 'user', content: `say ${quoted}!` }] });
    expect([answer.status, rig.sent.length, rig.health.writes]).toEqual([400, 1, []]);
  });

  it('never shows an end of the key, in any sentence', async () => {
    const message = `Bad key xa***yz, xai-...yz or xai-…nop-yz: the api key provided: ${secret.slice(0, 8)} does not fit`;
    const { text } = await post(new CoreRig(one).upstream(refuses(400, error(message))), asked[1]!);
    expect(JSON.parse(text).error.message).not.toMatch(/yz|xa|nop/);
  });
});

describe('a rate limit', () => {
  it.each<[string, UpstreamScript]>([
    [
      'a 413 of Groq',
      refuses(413, {
        error: {
          type: 'tokens',
          code: 'rate_limit_exceeded',
          message: 'Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000',
        },
      }),
    ],
    [
      'a 400 of DashScope',
      refuses(400, { error: { code: 'Throttling.RateQuota', message: 'Requests rate limit exceeded' } }),
    ],
    ['a 200 of MiniMax', { steps: [data({ base_resp: { status_code: 1002, status_msg: 'rate limit' } })] }],
    ['a 403 of Kimi', refuses(403, { error: { type: 'rate_limit_reached_error', message: 'x' } })],
    ['a 400 of Z.ai', refuses(400, { error: { code: '1302', message: 'x' } })],
    ['a 400 of Tencent', refuses(400, { error: { code: 'RequestLimitExceeded', message: 'x' } })],
  ])('is recognised with any status: %s', async (_who, script) => {
    const channels = [{ id: 'a', priority: 1 }, { id: 'b' }];
    for (const of of asked) {
      const rig = new CoreRig({ channels }).upstream(script, { steps: hello });
      expect((await post(rig, of)).status).toBe(200);
      const alone = await post(new CoreRig().upstream(script), of);
      expect([429, 529]).toContain(alone.status);
    }
  });
});

describe('an error in a vendor’s own form', () => {
  it.each<[string, object | string, object]>([
    [
      'a list of errors',
      { success: false, errors: [{ code: 7003, message: 'No such route' }] },
      { message: 'No such route' },
    ],
    [
      'FastAPI’s object',
      { detail: { message: 'bad field', code: 'bad_field' } },
      { message: 'bad field', code: 'bad_field' },
    ],
    ['FastAPI’s object with a text', { detail: { error: 'bad field' } }, { message: 'bad field' }],
    [
      'OpenRouter’s, around its vendor’s text',
      { error: { message: 'Provider returned error', code: 400, metadata: { raw: 'bad field' } } },
      { message: 'bad field' },
    ],
    ['FastAPI’s text', { detail: 'bad field' }, { message: 'bad field' }],
    [
      'Baidu’s',
      { error_code: 336003, error_msg: 'messages must be odd' },
      { message: 'messages must be odd' },
    ],
    ['a text', 'Failed to deserialize the JSON body', { message: 'Failed to deserialize the JSON body' }],
    ['a text as JSON', '"bad field"', { message: 'bad field' }],
  ])('is passed on as the caller’s mistake: %s', async (_shape, body, shown) => {
    const answer = await post(new CoreRig().upstream(refuses(400, body)), asked[1]!);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text).error).toMatchObject(shown);
  });
});

describe('a reasoning effort', () => {
  const known = { model_rules: { m: { efforts: ['none', 'low', 'high'] } } };
  const effortOf = (body: JsonRecord): unknown =>
    body['reasoning_effort'] ??
    asRecord(body['reasoning'])['effort'] ??
    asRecord(body['output_config'])['effort'];

  it.each([
    ['chat', {}],
    ['messages', {}],
    ['responses', {}],
    ['chat', known],
    ['messages', known],
    ['responses', known],
  ] as const)('that is unknown is left out in %s and named (%j)', async (dialect, params) => {
    for (const effort of ['', 'auto', 'default', ' Auto ', 'very much', 'off'])
      for (const body of [
        { path: '/v1/chat/completions', messages: user, reasoning_effort: effort },
        { path: '/v1/responses', input: 'hi', reasoning: { effort } },
      ]) {
        const { path, ...asks } = body;
        const rig = new CoreRig({ channels: [{ ...channelOf[dialect], params }] });
        const answer = await rig.upstream(answers[dialect]('stop')).post({ model: 'm', ...asks }, { path });
        expect(effortOf(rig.sent[0]!.json)).toBeUndefined();
        if (effort !== '' || path.endsWith('completions'))
          expect(answer.headers['x-relay-dropped']).toContain('reasoning_effort');
      }
  });

  it.each(['chat', 'messages', 'responses'] as const)(
    'is recognised in any case and with blanks in %s',
    async (dialect) => {
      const cases = [
        [' High ', 'high'],
        ['LOW', 'low'],
        ['xhigh', 'high'],
        ['ultra', 'high'],
        ['Maximum', 'high'],
      ];
      for (const [reasoning_effort, sent] of cases) {
        const rig = new CoreRig({ channels: [{ ...channelOf[dialect], params: known }] });
        await rig.upstream(answers[dialect]('stop')).post({ model: 'm', messages: user, reasoning_effort });
        expect([reasoning_effort, effortOf(rig.sent[0]!.json)]).toEqual([reasoning_effort, sent]);
      }
    },
  );
});

describe('an unknown word', () => {
  const words = (rig: CoreRig): string[] => [...rig.learned.known.values()].map(({ fact }) => fact);
  const ask = { endpoint: 'chat', stream: true } as const;

  it('is counted for the channel and written again when its count has doubled', async () => {
    const rig = new CoreRig().upstream(answers.chat('Brand-New'));
    for (let call = 0; call < 9; call += 1) {
      await post(rig, ask);
      await rig.clock.run(rig.clock.sleep(1));
    }
    expect(rig.learned.written.map(({ fact }) => fact)).toEqual(
      [1, 2, 4, 8].map((count) => `finish_word:brand_new+${count}`),
    );
    expect(words(rig)).toEqual(['finish_word:brand_new+8']);
  });

  it('of an error is counted, too, if nothing else is known of the error', async () => {
    const rig = new CoreRig().upstream(refuses(400, error('x', { code: 'brand_new' })));
    await post(rig, ask);
    rig.upstream(refuses(400, error('x', { code: 'unsupported_value' })));
    await post(rig, ask);
    expect(words(rig)).toEqual(['error_word:brand_new+1']);
  });

  it('that quotes the secret is counted as unreadable, because the warning would show the start of the secret', async () => {
    const rig = new CoreRig({
      channels: [{ id: 'a', secret: 'ssm:/relay/relay/a' }],
      secretOf: () => secret,
    });
    rig.upstream(refuses(400, error('x', { code: `bad_key_${secret}` })));
    expect((await post(rig, ask)).text).not.toContain(secret.slice(0, 12));
    for (const code of [`bad_${secret.slice(0, 15)}`, `bad_sk-${secret}`]) {
      const answer = await post(
        new CoreRig({ secretOf: () => secret, channels: [{ secret: 'ssm:/relay/relay/a' }] }).upstream(
          refuses(400, error('x', { code })),
        ),
        ask,
      );
      expect(answer.text).not.toContain(secret.slice(0, 12));
    }
    await post(rig.upstream(answers.chat(`ended by ${secret.toUpperCase()}.`)), ask);
    // So that the first word is stored.
    await rig.clock.run(rig.clock.sleep(1));
    await post(rig.upstream(answers.chat(`shortened ${secret.slice(0, 12)}...`)), ask);
    expect(words(rig)).toEqual(['error_word:unreadable+1', 'finish_word:unreadable+2']);
  });

  it('joins at most eight per channel, whatever a vendor sends', async () => {
    const rig = new CoreRig({ channels: [{ models: ['m', 'n'] }] });
    for (let call = 0; call < 100; call += 1) {
      const word = `word${call}${'x'.repeat(call)}`;
      await post(rig.upstream(answers.chat(word)), ask, call % 2 === 0 ? 'm' : 'n');
    }
    const known = words(rig);
    expect(known).toHaveLength(8);
    for (const fact of known) expect(fact.length).toBeLessThan(60);
    const many = Array.from({ length: 2000 }, (_, i) => finish(`other${i}`));
    rig.upstream({ steps: [delta('x'), ...many, usage(9, 2), done] });
    expect(endOf(await post(rig, ask))).toBe('stop');
    expect(words(rig)).toEqual(known);
  });
});

describe('the log line of a refused call', () => {
  it.each<[string, RigOptions]>([
    ['by an upstream', {}],
    ['by a balance', { charges: [{ id: 1, type: 'token-billing', models: ['m'], input: 1, output: 1 }] }],
    ['by a key', { keys: {} }],
  ])('has the status that the client saw: %s', async (_by, options) => {
    for (const of of asked) {
      const rig = new CoreRig(options).upstream(refuses(529, ''));
      const { status } = await post(rig, of);
      expect(status).toBeGreaterThanOrEqual(400);
      expect(rig.logged.map((line) => line.status)).toEqual([status]);
    }
  });
});
