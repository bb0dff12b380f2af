import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import type { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { spawnRunner, startLocalStack } from '../support/local-stack.ts';
import { writeTemplate, type FixtureTemplate } from './fixture-template.ts';

let template: FixtureTemplate;
let occupied: Server | undefined;

beforeAll(() => {
  template = writeTemplate();
});
afterEach(() => occupied?.close());
afterAll(() => template.remove());

const occupyPort = async (): Promise<string> => {
  occupied = createServer().listen(0, '127.0.0.1');
  await once(occupied, 'listening');
  return String((occupied.address() as AddressInfo).port);
};
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
const outcome = async (runner: ChildProcess) => {
  const [stdout, stderr, [code]] = await Promise.all([
    text(runner.stdout as Readable),
    text(runner.stderr as Readable),
    once(runner, 'exit') as Promise<[number]>,
  ]);
  return { stdout, stderr, code };
};
const run = (environment: Record<string, string>) =>
  outcome(spawnRunner({ RELAY_SEED: 'none', RELAY_TEMPLATE_FOLDER: template.folder, ...environment }));

describe('npm start', () => {
  it.each(['PORT', 'DYNAMODB_PORT'])('says in one line that %s is in use', async (name) => {
    const port = await occupyPort();
    expect(await run({ [name]: port })).toEqual({
      stdout: '',
      stderr: `relay cannot start: port ${port} (${name}) is in use; try: ${name}=${Number(port) + 1} npm start\n`,
      code: 1,
    });
  });

  it.each<[what: string, environment: Record<string, string>, line: string]>([
    ['a seed that does not exist', { RELAY_SEED: 'full' }, 'RELAY_SEED is full; wanted: demo or none'],
    ['a port that is none', { PORT: 'http' }, 'PORT is http; wanted: a port number'],
    [
      'a stack that was not synthesized',
      { RELAY_TEMPLATE_FOLDER: '/nowhere' },
      'no synthesized stack in /nowhere',
    ],
  ])('says in one line what is wrong with %s', async (_, environment, line) => {
    const { stderr, code } = await run(environment);
    expect(stderr).toContain(`relay cannot start: ${line}`);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(code).toBe(1);
  });

  it('says in one line which file of the data folder it cannot use', async () => {
    const data = mkdtempSync(path.join(tmpdir(), 'relay-used-'));
    writeFileSync(path.join(data, 'log'), 'of somebody');
    const { stderr } = await run({ RELAY_DATA: data });
    rmSync(data, { recursive: true });
    expect(stderr).toMatch(/^relay cannot start: EEXIST: .*relay-used-\w+\/log'\n$/);
  });

  it('ends with everything it started', async () => {
    const stack = await startLocalStack({ seed: 'none', env: { RELAY_TEMPLATE_FOLDER: template.folder } });
    const origin = stack.baseUrl.replace('/v1', '');
    expect((await fetch(`${origin}/bare`)).status).toBe(200);
    const pids = stack.environmentPids('plain');
    expect(pids).toHaveLength(1);
    await stack.stop();
    expect(pids.filter(isAlive)).toEqual([]);
    await expect(fetch(stack.dynamodbEndpoint)).rejects.toThrow('fetch failed');
    await expect(fetch(origin)).rejects.toThrow('fetch failed');
  });

  it('serves on after an environment was killed', async () => {
    const stack = await startLocalStack({ seed: 'none', env: { RELAY_TEMPLATE_FOLDER: template.folder } });
    const origin = stack.baseUrl.replace('/v1', '');
    expect((await fetch(`${origin}/dies`)).status).toBe(502);
    expect((await fetch(`${origin}/bare`)).status).toBe(200);
    await stack.stop();
  });

  it('leaves nothing behind when it is killed itself', async () => {
    const stack = await startLocalStack({ seed: 'none', env: { RELAY_TEMPLATE_FOLDER: template.folder } });
    await fetch(`${stack.baseUrl.replace('/v1', '')}/bare`);
    const pids = stack.environmentPids('plain');
    process.kill(stack.pid, 'SIGKILL');
    await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]), { timeout: 5000 });
    await vi.waitFor(() => expect(fetch(stack.dynamodbEndpoint)).rejects.toThrow('fetch failed'), {
      timeout: 5000,
    });
  });
});
