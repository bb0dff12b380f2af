/** `npm start` as a user sees it: through npm, in a terminal of 40 columns if `script` exists, and through pipes. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');
const terminal = ['/usr/bin/script', '/bin/script'].find((file) => existsSync(file));
const patient = { timeout: 30_000, interval: 20 };

let folder: string;
let ports: Record<'PORT' | 'DYNAMODB_PORT', string>;
let running: ChildProcess[];
async function prepare(): Promise<void> {
  folder = mkdtempSync(path.join(tmpdir(), 'relay-calm-'));
  ports = { PORT: await freePort(), DYNAMODB_PORT: await freePort() };
  running = [];
}
async function clear(): Promise<void> {
  for (const child of running) if (child.pid !== undefined) killGroup(child.pid, 'SIGKILL');
  await untilNone();
  rmSync(folder, { recursive: true, force: true });
}

const untilNone = (): Promise<void> =>
  vi.waitFor(() => {
    const left = processesOf(folder);
    if (left.length > 0) throw new Error(`still there: ${left.join(', ')}`);
  }, patient);

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return String(port);
}

function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // It has exited.
  }
}

/** All processes that were started with this data folder, found by their environment. */
function processesOf(data: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        // An exited process that was not waited for has no environment.
        return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`RELAY_DATA=${data}\0`);
      } catch {
        return false;
      }
    });
}

interface Started {
  child: ChildProcess;
  /** Output of both streams, without npm's warnings about its own settings. */
  text: () => string;
  lines: () => string[];
  ended: Promise<number | null>;
}

function start(command: string[], environment: Record<string, string> = {}): Started {
  const [file = '', ...words] = command;
  const child = spawn(file, words, {
    cwd: root,
    detached: true,
    env: { ...process.env, ...ports, RELAY_DATA: folder, RELAY_LOG: '', ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  running.push(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
  const shown = (): string =>
    text
      .split(/\r?\n/)
      .filter((line) => !/^npm (warn|notice)/i.test(line))
      .join('\n');
  return {
    child,
    text: shown,
    lines: () => shown().trimEnd().split('\n'),
    ended: new Promise((resolve) => child.once('close', (code) => resolve(code))),
  };
}

const untilReady = ({ text }: Started): Promise<void> =>
  vi.waitFor(() => expect(text()).toContain('relay ready on '), { ...patient, timeout: 100_000 });

/** Waits for the process to exit by itself. */
async function untilGone({ ended }: Started): Promise<void> {
  await ended;
  await untilNone();
}

const shell = (line: string) =>
  promisify(execFile)('/bin/sh', ['-c', line], { cwd: root, env: { ...process.env, RELAY_DATA: '' } });

describe('npm start', () => {
  let stack: Started;
  beforeAll(async () => {
    await prepare();
    stack = start(['npm', 'start']);
    await untilReady(stack);
  }, 100_000);
  afterAll(clear);

  const logFile = (): string => /log (\S+)$/m.exec(stack.text())?.[1] ?? '';

  it('prints its address and working example commands in 12 lines', async () => {
    expect(stack.lines().length).toBeLessThanOrEqual(12);
    const lines = stack.lines();
    const [curl, tool, page] = ['curl ', 'npx ', 'account page '].map(
      (words) => lines.find((line) => line.includes(words)) ?? '',
    );
    expect((await shell(`${curl} -sS`)).stdout).toContain('[DONE]');
    expect((await shell(tool ?? '')).stdout).toContain('demo');
    const shown = await fetch(page?.split(' ')[2] ?? '', { headers: { accept: 'text/html' } });
    expect(shown.status).toBe(200);
    expect(lines.at(-1)).toBe(`relay ready on http://127.0.0.1:${ports.PORT}/v1`);
    expect(readFileSync(logFile(), 'utf8')).toMatch(/^\S+Z chat \{/m);
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    const forOthers = files.filter((name) => (statSync(path.join(folder, name)).mode & 0o077) !== 0);
    expect([files.length > 4, forOthers, statSync(folder).mode & 0o777]).toEqual([true, [], 0o700]);
    // The calls have printed nothing on the terminal.
    expect(stack.lines().length).toBeLessThanOrEqual(12);
  });

  it('reports used ports with their variables and free alternatives, and a used data folder', async () => {
    const second = start(['npm', 'start']);
    expect(await second.ended).toBe(1);
    expect(second.text()).toContain(
      `port ${ports.PORT} (PORT) and ${ports.DYNAMODB_PORT} (DYNAMODB_PORT) are in use; try: PORT=`,
    );
    const third = start(['npm', 'start'], { PORT: '0', DYNAMODB_PORT: '0' });
    expect(await third.ended).toBe(1);
    expect(third.lines().at(-1)).toBe(
      `relay cannot start: RELAY_DATA is ${folder}, which another stack is using: stop it, or set RELAY_DATA to another folder`,
    );
    expect((await fetch(`http://127.0.0.1:${ports.PORT}/v1/models`)).status).toBe(200);
  });

  it('shows that a process died, but not each failed call', async () => {
    const pids = [...readFileSync(logFile(), 'utf8').matchAll(/environment catalog#\d+ pid (\d+)$/gm)];
    const pid = pids.at(-1)?.[1];
    expect(pid).toBeDefined();
    process.kill(Number(pid), 'SIGKILL');
    await vi.waitFor(
      () => expect(stack.text()).toMatch(/^environment \S+ pid \d+ ended \(SIGKILL\)$/m),
      patient,
    );
  });

  it('ends all its processes if npm is killed', async () => {
    expect(processesOf(folder).length).toBeGreaterThan(3);
    process.kill(stack.child.pid ?? 0, 'SIGKILL');
    await untilGone(stack);
  });
});

describe('another npm start', () => {
  beforeEach(prepare);
  afterEach(clear);

  it('fits a terminal of 40 columns if there is one, and ends at Ctrl-C', async () => {
    const stack = start(
      terminal === undefined ? ['npm', 'start'] : [terminal, '-qec', 'stty cols 40; npm start', '/dev/null'],
    );
    await untilReady(stack);
    const prepared = stack.text().split('\u001B[K').slice(0, -1);
    // Overwritten text must fit on one line.
    for (const each of prepared) expect((each.split('\r').at(-1) ?? '').length).toBeLessThan(40);
    if (terminal === undefined) killGroup(stack.child.pid ?? 0, 'SIGINT');
    else stack.child.stdin?.write('\u0003');
    await untilGone(stack);
    expect(stack.text()).toContain(`stopped; data is saved in ${folder}`);
    expect(stack.text()).not.toContain(' ended (');
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(['demo-key', 'dynamodb.sqlite', 'log']));
  });

  it('exits at Ctrl-C while it starts', async () => {
    const stack = start(['npm', 'start']);
    await vi.waitFor(() => expect(existsSync(path.join(folder, 'log'))).toBe(true), patient);
    killGroup(stack.child.pid ?? 0, 'SIGINT');
    await untilGone(stack);
    // It neither waited for a start nor reported a failed one.
    expect(stack.text()).not.toMatch(/relay ready on|cannot start/);
    expect(stack.lines().at(-1)).toBe(`stopped; data is saved in ${folder}`);
  });
});
