import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeRunning } from '../../infra/ops/session/running-stack.ts';
import { resolveTarget } from '../../infra/ops/session/session.ts';
import { localStackId } from '../../shared/adapters/dynamodb/operator-store.ts';
import { emulatorClient, startEmulator, type Emulator } from '../support/emulator.ts';
import { runOps, runOpsProcess } from './run-ops.ts';

let emulator: Emulator;
beforeAll(async () => {
  emulator = await startEmulator('relay-two');
});
afterAll(async () => emulator.stop());

const firstLine = (output: string) => output.split('\n')[0];

describe('the target of the tool', () => {
  it('is the local stack by default: never a real account', () => {
    expect(resolveTarget({}, { AWS_PROFILE: 'prod', AWS_REGION: 'eu-west-1' })).toEqual({
      stack: 'relay',
      endpoint: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) as string,
      local: true,
      clone: path.resolve(import.meta.dirname, '../..'),
    });
  });

  it('is the named stack at the endpoint of the environment, if that is set', async () => {
    const run = await runOps('key list --stack relay-two', {
      AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint,
    });
    expect(run.code).toBe(0);
    expect(firstLine(run.output)).toBe(`local tables at ${emulator.endpoint} (relay-two-*)`);
  });

  it('is a deployed stack, with its region and profile on the first line', async () => {
    const run = await runOpsProcess('key list --stack relay-x', { AWS_REGION: 'eu-west-1' });
    expect(firstLine(run.output)).toBe('stack relay-x in eu-west-1 (default AWS credentials)');
    expect(run.code).toBe(1);
    expect(run.errors).toContain('no valid AWS credentials: set AWS_PROFILE');
  });

  it.each([
    ['http://127.191.18.57:43399', true],
    ['http://localhost:8000', true],
    ['http://127.0.0.1.evil.example:8000', false],
    ['http://128.0.0.1:8000', false],
  ])('treats %s as local: %s', (endpoint, local) => {
    expect(resolveTarget({}, { AWS_ENDPOINT_URL_DYNAMODB: endpoint }).local).toBe(local);
  });

  it('is not local if the endpoint is not loopback, so all rules apply there', () => {
    const environment = { AWS_ENDPOINT_URL_DYNAMODB: 'https://dynamodb.eu-west-1.amazonaws.com' };
    expect(resolveTarget({}, environment)).toMatchObject({ local: false });
  });
});

describe('without a name for the tables, the tool', () => {
  let own: Emulator;
  const folder = mkdtempSync(path.join(tmpdir(), 'relay-running-'));
  const clone = path.resolve(import.meta.dirname, '../..');
  const environment = { RELAY_DATA: folder };
  const sayWhose = async (of: string | undefined): Promise<void> => {
    const client = emulatorClient(own.endpoint);
    const Item = { id: { S: localStackId }, ...(of !== undefined && { clone: { S: of } }) };
    await client.send(new PutItemCommand({ TableName: 'relay-runtime', Item }));
    client.destroy();
  };
  beforeAll(async () => {
    own = await startEmulator();
    writeRunning(folder, own.endpoint);
  });
  afterAll(async () => {
    await own.stop();
    rmSync(folder, { recursive: true });
  });

  it('uses the stack of its clone, found by the port in its data folder', async () => {
    await sayWhose(clone);
    const run = await runOps('key list', environment);
    expect({ code: run.code, errors: run.errors }).toEqual({ code: 0, errors: '' });
    expect(firstLine(run.output)).toBe(`local tables at ${own.endpoint} (relay-*)`);
  });

  it.each([
    ['another clone', '/somewhere/else', 'belong to /somewhere/else'],
    ['another program', undefined, 'do not belong to a running `npm start`'],
  ])('refuses to use the tables of %s, unless the environment names them', async (_whose, of, words) => {
    await sayWhose(of);
    const run = await runOps('key list', environment);
    expect(run.code).toBe(2);
    expect(run.errors).toContain(words);
    const named = await runOps('key list', { AWS_ENDPOINT_URL_DYNAMODB: own.endpoint });
    expect(named.code).toBe(0);
  });
});

describe('a failure is one line', () => {
  it.each([
    [
      'no stack runs in this account and region: check --stack, AWS_PROFILE and AWS_REGION',
      { AWS_ENDPOINT_URL_DYNAMODB: 'http://127.0.0.1:1' },
      ['key', 'list'],
      1,
      'no local stack is running at http://127.0.0.1:1: run `npm start` first, or use --stack for a deployed one',
    ],
    [
      'a stack name is invalid',
      {},
      ['key', 'list', '--stack', 'a b'],
      2,
      'use letters, digits and -, for example relay-test',
    ],
    [
      'an option is required: there is no terminal to ask',
      {},
      ['key', 'new'],
      2,
      "missing required argument 'account'",
    ],
  ])('%s', async (_case, environment, words, code, message) => {
    const run = await runOps(words, environment);
    expect(run.code).toBe(code);
    expect(run.errors).toContain(message);
    expect(run.errors).not.toContain('    at ');
  });

  it.each([
    ['no region is known', ['key', 'list', '--stack', 'relay'], 1, 'no AWS region: set AWS_REGION'],
    ['a command is unknown', ['keys'], 2, "unknown command 'keys'"],
  ])('%s, and the process prints it and exits', async (_case, words, code, message) => {
    const run = await runOpsProcess(words);
    expect(run.code).toBe(code);
    expect(run.errors).toContain(message);
    expect(run.errors).not.toContain('    at ');
  });

  it('the tables of the stack do not exist', async () => {
    const run = await runOps('key list', { AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint });
    expect(run.code).toBe(1);
    expect(run.errors).toContain('has no tables named relay-*: `npm start` creates those of the stack relay');
  });
});

describe('a deployed stack is named in one way on every command', () => {
  const place = { region: 'eu-central-1', profile: 'prod' };

  it('by --stack or --stage, with the region and the profile of the options', () => {
    expect(resolveTarget({ stage: 'test' }, {})).toEqual({ stack: 'relay-test', local: false });
    expect(resolveTarget(place, {})).toEqual({ stack: 'relay', local: false, ...place });
  });

  it('and the first line shows it, whatever the environment names', async () => {
    const words = ['key', 'list', '--stage', 'test', '--region', 'eu-central-1'];
    const run = await runOpsProcess(words, { AWS_REGION: 'eu-west-1' });
    expect(firstLine(run.output)).toBe('stack relay-test in eu-central-1 (default AWS credentials)');
    const profiled = await runOpsProcess([...words, '--profile', 'nobody-has-this'], {});
    expect(firstLine(profiled.output)).toBe('stack relay-test in eu-central-1 (profile nobody-has-this)');
    expect(profiled.code).toBe(1);
    expect(profiled.errors).toContain('no valid AWS credentials');
  });

  it('but if --region describes a channel’s upstream, it is not the region of the relay', async () => {
    const words = 'init --id b --type bedrock --region us-west-2 --models m'.split(' ');
    const run = await runOps(words, { AWS_ENDPOINT_URL_DYNAMODB: 'http://127.0.0.1:1' });
    expect(firstLine(run.output)).toBe('local tables at http://127.0.0.1:1 (relay-*)');
  });
});
