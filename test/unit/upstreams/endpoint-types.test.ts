import { describe, expect, it } from 'vitest';
import { readChannel } from '../../../shared/config/rows/channel-row.ts';

const read = (attributes: Record<string, unknown>, local = false) =>
  readChannel({ id: 'c', models: ['m'], state: true, ...attributes }, { local });

describe('a channel of a type with a fixed address', () => {
  it.each([
    [{ type: 'anthropic' }, 'https://api.anthropic.com/v1'],
    [{ type: 'gemini' }, 'https://generativelanguage.googleapis.com/v1beta/openai'],
    [{ type: 'bedrock', region: 'eu-west-1' }, 'https://bedrock-runtime.eu-west-1.amazonaws.com'],
  ])('needs no endpoint: %j', (row, endpoint) => {
    expect(read(row)).toEqual({ row: expect.objectContaining({ endpoint }) as unknown });
  });
});

describe('a row that does not fit its type is rejected with the expected value', () => {
  it.each([
    [{}, /^endpoint: missing, expected/],
    [{ type: 'azure', api_version: '2024-10-21' }, /^endpoint: missing, expected/],
    [
      { type: 'azure', endpoint: 'https://r.openai.azure.com' },
      /^api_version: missing, expected .*openai\/v1/,
    ],
    [
      { type: 'azure', endpoint: 'https://r.openai.azure.com', api_version: '?x' },
      /^api_version: found "\?x", expected/,
    ],
    [
      { endpoint: 'https://a.example.com/v1', api_version: 'preview' },
      /^api_version: .*only the types anthropic, azure/,
    ],
    [{ endpoint: 'https://a.example.com/v1', region: 'us-east-1' }, /^region: .*only the type bedrock/],
    [{ type: 'bedrock' }, /^region: missing, expected/],
    [{ type: 'bedrock', region: 'evil.example.com/' }, /^region: found .*expected an AWS region/],
    [{ type: 'bedrock', region: 'us-east-1', secret: 'ssm:/relay/relay/x' }, /^secret: .*own role/],
    [
      { type: 'bedrock', region: 'us-east-1', endpoint: 'https://evil.example.com/v1' },
      /^endpoint: .*are signed/,
    ],
    [
      {
        type: 'bedrock',
        region: 'us-east-1',
        endpoint: 'https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1',
      },
      /^endpoint: .*are signed/,
    ],
    [
      {
        type: 'bedrock',
        region: 'us-east-1',
        endpoint: 'https://bedrock-runtime.us-east-1.amazonaws.com.evil.com/',
      },
      /^endpoint: .*are signed/,
    ],
    [
      {
        type: 'bedrock',
        region: 'us-east-1',
        endpoint: 'https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1/',
      },
      /^endpoint: found \/openai\/v1 at the end, expected the host alone/,
    ],
    [{ type: 'palm' }, /^type: found "palm", expected "openai", .*"bedrock"/],
  ])('%j', (row, problem) => {
    expect(read(row)).toMatchObject({ problem: expect.stringMatching(problem) as unknown });
  });

  it('Bedrock may use its other host names, and this machine on the local stack', () => {
    const endpoint = 'https://bedrock-runtime-fips.us-east-1.amazonaws.com';
    expect(read({ type: 'bedrock', region: 'us-east-1', endpoint })).toMatchObject({ row: { endpoint } });
    const loopback = { type: 'bedrock', region: 'us-east-1', endpoint: 'http://127.0.0.1:9/' };
    expect(read(loopback, true)).toMatchObject({ row: { endpoint: 'http://127.0.0.1:9' } });
    expect(read(loopback)).toHaveProperty('problem');
  });
});
