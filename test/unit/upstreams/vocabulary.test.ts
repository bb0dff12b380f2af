import { describe, expect, it } from 'vitest';
import { ChannelRow } from '../../../shared/config/rows/channel-row.ts';
import { findErrorMeaning, isTooLong, readFinish, type Words } from '../../../shared/upstreams/vocabulary.ts';

const finish = (word: string, words?: Words) => readFinish(word, words)?.means;

describe('the words in a row', () => {
  const words: Words = {
    finish: { 'all done': 'stop', 'cut_*_now': 'length', STOP: 'failed' },
    errors: {
      '*no resource package*': 'account',
      'Quota-Full': 'rate_limit',
      'too busy*later': 'overloaded',
      invalid_api_key: 'caller',
    },
  };

  it.each([
    ['AllDone', 'stop'],
    ['all_done', 'stop'],
    ['cut_right_now', 'length'],
    ['cut__now', 'length'],
    ['cut_now_or_later', 'unknown'],
    ['stop', 'failed'],
  ])('give the finish reason %s the meaning %s', (word, means) => {
    expect(finish(word, words)).toBe(means);
  });

  it.each([
    [{ message: 'Sorry, No Resource Package here' }, 'account'],
    [{ code: 'QuotaFull' }, 429],
    [{ type: 'quota.full', code: null }, 429],
    [{ message: 'Too busy: try later' }, 529],
    [{ message: 'Too busy: try later, or now' }, undefined],
    [{ code: 'invalid_api_key' }, 400],
  ])('give the error %j the meaning %s', (error, means) => {
    expect(findErrorMeaning(error, { words })).toBe(means);
  });

  it('ignore a sentence that the request contains', () => {
    const message = 'Sorry, no resource package here';
    expect(findErrorMeaning({ message }, { words, sentBody: 'a No Resource Package.' })).toBeUndefined();
  });

  it.each([
    ['only a wildcard', { errors: { '*': 'account' } }],
    ['few letters', { finish: { 'a*b': 'stop' } }],
    ['many stars', { finish: { 'one*two*three*four*five': 'stop' } }],
    ['an unknown meaning', { finish: { odd: 'great' } }],
    ['a word of another kind', { ends: { odd: 'stop' } }],
    ['a long text', { errors: { ['x'.repeat(129)]: 'caller' } }],
  ])('are rejected: %s', (_case, written) => {
    const row = {
      id: 'main',
      endpoint: 'https://upstream.test/v1',
      models: ['m'],
      params: { words: written },
    };
    expect(ChannelRow.safeParse(row).success).toBe(false);
  });

  it('are matched quickly against a text that nearly matches', () => {
    const near = 'ab'.repeat(4_000);
    const own: Words = { errors: { '*abab*abab*abac': 'account' } };
    expect(findErrorMeaning({ message: near, code: near }, { words: own, sentBody: near })).toBeUndefined();
    expect(isTooLong(400, { message: `prompt ${'input '.repeat(2_000)}` })).toBe(false);
    expect(finish(near)).toBe('unknown');
  });
});

describe('the words of an error', () => {
  it.each([
    [{ code: 400, type: 'exceed_context_size_error' }, 'too_long'],
    [{ code: 502, type: 'invalid_request_error' }, 502],
    [{ code: 'brand_new', type: 'rate_limit_error' }, 429],
    [{ code: 'brand_new', type: 'invalid_request_error' }, 400],
    [{ code: 'insufficient_system_resource' }, undefined],
    [{ code: 'unsupported_country_region_territory' }, 403],
    [{ code: 'DeploymentNotFound' }, 'failed'],
    [{ type: 'FAILED_PRECONDITION', message: 'User location is not supported for the API use.' }, 403],
    [{ code: 'InvalidEndpoint.ClosedEndpoint' }, 'failed'],
    [
      {
        type: 'ValidationException',
        message:
          'Invocation of model ID anthropic.claude-3-5-sonnet-20241022-v2:0 with on-demand throughput isn’t supported. Retry your request with an inference profile.',
      },
      'failed',
    ],
    [{ reasons: ['ResourceNotFoundException'] }, 'failed'],
    [{ reasons: ['ServiceQuotaExceededException'] }, 429],
    [{ reasons: ['BILLING_DISABLED'] }, 'account'],
    [{ code: 1002 }, 429],
    [{ code: 'ResponsibleAIPolicyViolation' }, 400],
    [{ message: `${'x'.repeat(200)} credit balance is too low` }, undefined],
  ])('%j: %s', (error, means) => {
    expect(findErrorMeaning(error)).toBe(means);
  });

  it.each([undefined, null, '', 'null', 7, {}])('%j have no meaning', (value) => {
    expect(readFinish(value)).toBeUndefined();
  });
});
