import { describe, expect, test } from 'vitest';
import {
  readEnvironment,
  readStateKeys,
  readTracing,
} from '../../../../shared/adapters/system/environment.ts';

const complete = {
  RELAY_STACK: 'relay-beta',
  RELAY_VERSION: '1.2.3',
  ORIGIN_SECRETS: 'first, second,',
  AWS_REGION: 'eu-central-1',
  AWS_ACCESS_KEY_ID: 'id',
  AWS_SECRET_ACCESS_KEY: 'secret',
};

describe('the environment', () => {
  test('is read into one typed object', () => {
    expect(readEnvironment(complete)).toEqual({
      stack: 'relay-beta',
      version: '1.2.3',
      originSecrets: ['first', 'second'],
      local: false,
      functionVersion: '$LATEST',
      envSecrets: ['OPENAI_API_KEY'],
      aws: { region: 'eu-central-1', credentials: { accessKeyId: 'id', secretAccessKey: 'secret' } },
    });
  });

  test.each(Object.keys(complete))('names %s when it is missing', (name) => {
    expect(() => readEnvironment({ ...complete, [name]: undefined })).toThrow(name);
  });

  test('has numbered seal keys, the newest last', () => {
    const keys = '{"10":"ten","2":"two"}';
    expect(readStateKeys({ SEAL_KEYS: keys })).toEqual([
      { number: 2, secret: 'two' },
      { number: 10, secret: 'ten' },
    ]);
  });

  test.each([
    '',
    '{}',
    '[]',
    'null',
    '{"1":""}',
    '{"0":"secret"}',
    '{"1":"secret","x":"secret"}',
    '{"secret',
  ])('rejects the seal keys %j without quoting them', (keys) => {
    expect(() => readStateKeys({ SEAL_KEYS: keys })).toThrow(/SEAL_KEYS(?!.*"secret)/);
  });

  test('generates its own seal keys when the host sets none', () => {
    const [first] = readStateKeys({});
    const [second] = readStateKeys({});
    expect(first?.secret).toMatch(/^[0-9a-f-]{36}$/);
    expect(first?.secret).not.toBe(second?.secret);
  });
});

describe('the destination of traces', () => {
  test.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otlp.example.com' }, 'https://otlp.example.com/v1/traces'],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otlp.example.com/otlp/' },
      'https://otlp.example.com/otlp/v1/traces',
    ],
    [
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: 'https://a.example',
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://b.example/t',
      },
      'https://b.example/t',
    ],
  ])("is an address in OpenTelemetry's format: %o", (variables, url) => {
    expect(readTracing(variables)).toEqual({ url, headers: {}, service: undefined, ratio: 1 });
  });

  test('has headers, a name and a share', () => {
    expect(
      readTracing({
        OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otlp.example.com',
        OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20abc=, x-odd=50%, broken',
        OTEL_SERVICE_NAME: 'gateway',
        OTEL_TRACES_SAMPLER_ARG: '0.25',
      }),
    ).toMatchObject({
      headers: { authorization: 'Basic abc=', 'x-odd': '50%' },
      service: 'gateway',
      ratio: 0.25,
    });
  });
});

describe('tracing', () => {
  const OTEL_EXPORTER_OTLP_ENDPOINT = 'https://otlp.example.com';
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT };

  test.each([
    [{ OTEL_SDK_DISABLED: 'true' }],
    [{ OTEL_SDK_DISABLED: 'TRUE' }],
    [{ OTEL_TRACES_SAMPLER: 'always_off' }],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_off', OTEL_TRACES_SAMPLER_ARG: '1' }],
  ])('is disabled with %o', (variables) => {
    expect(readTracing({ ...on, ...variables })).toBeUndefined();
  });

  test.each([
    [{ OTEL_TRACES_SAMPLER_ARG: '-1' }, 1],
    [{ OTEL_TRACES_SAMPLER_ARG: '7' }, 1],
    [{ OTEL_TRACES_SAMPLER_ARG: 'half' }, 1],
    [{ OTEL_TRACES_SAMPLER_ARG: '0' }, 0],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' }, 0.1],
    [{ OTEL_TRACES_SAMPLER: 'always_on', OTEL_TRACES_SAMPLER_ARG: '0.1' }, 1],
    [{ OTEL_SDK_DISABLED: 'false' }, 1],
  ])('with %o has the share %d', (variables, ratio) => {
    expect(readTracing({ ...on, ...variables })?.ratio).toBe(ratio);
  });

  test.each([
    ['Authorization=Bearer abc', { Authorization: 'Bearer abc' }],
    ['x.tenant=one , X-Two = a b ', { 'x.tenant': 'one', 'X-Two': 'a b' }],
    ['x-empty=, =none, bad name=1', { 'x-empty': '' }],
    ['x-line=a%0Ab', { 'x-line': 'a\nb' }],
  ])('sends the headers of %j', (text, headers) => {
    expect(readTracing({ ...on, OTEL_EXPORTER_OTLP_HEADERS: text })?.headers).toEqual(headers);
  });
});
