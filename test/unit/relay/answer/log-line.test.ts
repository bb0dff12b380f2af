import { describe, expect, it } from 'vitest';
import { BillingRig, small, yuan } from '../../../support/billing-rig.ts';
import {
  data,
  delta,
  done,
  finish,
  hello,
  type RigOptions,
  type UpstreamScript,
} from '../../../support/core-rig.ts';

const two = [
  { id: 'first', priority: 2 },
  { id: 'second', endpoint: 'https://other.test/v1' },
];
const impossible = [
  delta('a'),
  finish(),
  data({ choices: [], usage: { prompt_tokens: 7, completion_tokens: -4 } }),
  done,
];
const cached = [
  delta('a'),
  finish(),
  data({
    choices: [],
    usage: { prompt_tokens: 7, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 6 } },
  }),
  done,
];
const search = { type: 'searxng', endpoint: 'https://search.test', results: 5 } as const;
const head = {
  request_id: '01call00000000000000000001',
  endpoint: 'chat',
  status: 200,
  end: 'completed',
  duration_ms: 0,
  key_hint: 'sk-te...st',
  account: 'acme',
  model: 'm',
};
const answered = {
  channel: 'main',
  attempts: [{ channel: 'main', outcome: 'answered' }],
  upstream_status: 200,
};
/** Fields of a failed call. */
const wide = {
  retries: 1,
  reserved: { yuan: expect.any(String), max_tokens: expect.any(Number) },
  sent: expect.arrayContaining(['model', 'messages']),
};
const counted = { prompt_tokens: 7, completion_tokens: 2, usage_estimated: false };

const whole: [string, RigOptions, UpstreamScript[], object, object][] = [
  [
    'a plain call',
    {},
    [{ steps: hello }],
    small,
    { ...head, ...answered, first_content_ms: 0, ...counted, charge: '0.011' },
  ],
  [
    'a call that failed over to another channel',
    { channels: two },
    [{ status: 503 }, { steps: hello }],
    small,
    {
      ...head,
      channel: 'second',
      attempts: [
        { channel: 'first', outcome: 'upstream_status_503', status: 503, at: 0, ms: 0 },
        { channel: 'second', outcome: 'answered', status: 200, at: 0, ms: 0 },
      ],
      ...wide,
      first_text_ms: 0,
      length: expect.any(Number),
      upstream_status: 200,
      first_content_ms: 0,
      ...counted,
      charge: '0.011',
    },
  ],
  [
    'a call with an unreachable last channel, with the status of the channel before',
    { channels: two },
    [{ status: 503 }, { connect: 'refused' }],
    small,
    {
      ...head,
      status: 502,
      end: 'failed',
      code: 'upstream_unavailable',
      reason: 'upstream_status_503 upstream_connect',
      channel: 'second',
      attempts: [
        { channel: 'first', outcome: 'upstream_status_503', status: 503, at: 0, ms: 0 },
        { channel: 'second', outcome: 'upstream_connect', at: 0, ms: 0 },
      ],
      ...wide,
      upstream_status: 503,
      charge: '0',
    },
  ],
  [
    'a call with an impossible count',
    {},
    [{ steps: impossible }],
    small,
    {
      ...head,
      ...answered,
      first_content_ms: 0,
      prompt_tokens: 7,
      completion_tokens: 1,
      usage_estimated: true,
      usage_flag: 'output:impossible',
      usage_implausible: true,
      reported_input: 7,
      reported_output: -4,
      charge: '0.009',
    },
  ],
  [
    'a call with a partly cached prompt',
    {},
    [{ steps: cached }],
    small,
    {
      ...head,
      ...answered,
      first_content_ms: 0,
      prompt_tokens: 7,
      completion_tokens: 1,
      cached_tokens: 6,
      usage_estimated: false,
      charge: '0.009',
    },
  ],
  [
    'a web- call',
    { settings: { search }, search: () => Promise.resolve([]) },
    [{ steps: hello }],
    { ...small, model: 'web-m' },
    { ...head, search: 'empty', ...answered, first_content_ms: 0, ...counted, charge: '0.011' },
  ],
  [
    'a call that the key does not allow',
    {},
    [{ steps: hello }],
    { ...small, official: true },
    {
      request_id: head.request_id,
      endpoint: 'chat',
      status: 403,
      end: 'refused',
      duration_ms: 0,
      code: 'official_not_allowed',
      param: true,
      key_hint: 'sk-te...st',
      account: 'acme',
    },
  ],
];

describe('the log line', () => {
  it.each(whole)('of %s has exactly these fields', async (_case, options, scripts, body, line) => {
    const rig = new BillingRig(options).granted(10n * yuan).upstream(...scripts);
    await rig.call(body);
    expect(rig.logged).toEqual([line]);
  });
});
