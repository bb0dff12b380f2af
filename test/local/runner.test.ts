import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { spawnRunner, startLocalStack } from '../support/local-stack.ts';
import { writeTemplate, type FixtureTemplate } from './fixture-template.ts';

let template: FixtureTemplate;

beforeAll(() => {
  template = writeTemplate();
});
afterAll(() => template.remove());

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
  it.each<[what: string, environment: Record<string, string>, line: string]>([
    ['a seed that does not exist', { RELAY_SEED: 'full' }, 'invalid RELAY_SEED full: use demo or none'],
    [
      'a stack that is not synthesized',
      { RELAY_TEMPLATE_FOLDER: '/nowhere' },
      'no synthesized stack in /nowhere',
    ],
  ])('reports %s in one line', async (_, environment, line) => {
    const { stderr, code } = await run(environment);
    expect(stderr).toContain(`relay cannot start: ${line}`);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(code).toBe(1);
  });

  it('reports an unusable file of the data folder in one line', async () => {
    const data = mkdtempSync(path.join(tmpdir(), 'relay-used-'));
    writeFileSync(path.join(data, 'log'), 'of somebody');
    const { stderr } = await run({ RELAY_DATA: data });
    rmSync(data, { recursive: true });
    expect(stderr).toMatch(/^relay cannot start: EEXIST: .*relay-used-\w+\/log'\n$/);
  });

  it('keeps serving after an environment was killed, and ends with all its processes', async () => {
    const stack = await startLocalStack({ seed: 'none', env: { RELAY_TEMPLATE_FOLDER: template.folder } });
    const origin = stack.baseUrl.replace('/v1', '');
    expect((await fetch(`${origin}/dies`)).status).toBe(502);
    expect((await fetch(`${origin}/bare`)).status).toBe(200);
    const pids = stack.environmentPids('plain');
    expect(pids).toHaveLength(1);
    await stack.stop();
    expect(pids.filter(isAlive)).toEqual([]);
    await expect(fetch(stack.dynamodbEndpoint)).rejects.toThrow('fetch failed');
    await expect(fetch(origin)).rejects.toThrow('fetch failed');
  });

  it('leaves no process behind if it is killed', async () => {
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
