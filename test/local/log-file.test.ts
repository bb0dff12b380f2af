import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { claimDataFolder } from '../../infra/local/host/emulator.ts';
import { showTrouble } from '../../infra/local/host/messages.ts';
import { keepLines, createKeptLines, startLogsApi, type KeptLines } from '../../infra/local/log.ts';
import { createInsightsCallLog } from '../../shared/adapters/aws/insights-call-log.ts';

let folder: string;
let kept: KeptLines | undefined;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'relay-kept-'));
});
afterEach(() => {
  kept?.close();
  rmSync(folder, { recursive: true, force: true });
});

const line = (text: string) => ({ atMs: Date.parse('2026-11-22T09:00:00Z'), functionName: 'chat', text });
const texts = (): string[] | undefined => kept?.all().map(({ text }) => text);

describe('the log of the local stack', () => {
  it('contains the lines of functions and of the stack itself, and rotates when it is full', () => {
    kept = createKeptLines(folder, { warn: () => undefined, bytesMax: 200 });
    const log = keepLines(kept, () => undefined);
    log('[chat] {"a":1}');
    log('environment chat#1 pid 7');
    expect(kept.all()).toMatchObject([
      { functionName: 'chat', text: '{"a":1}' },
      { functionName: 'stack', text: 'environment chat#1 pid 7' },
    ]);
    for (let count = 0; count < 20; count += 1) log(`[chat] ${count}`);
    expect(texts()?.at(-1)).toBe('19');
    expect(texts()?.length).toBeLessThan(12);
  });

  it('reports a full disk once, and resumes writing when there is room', () => {
    const warned: string[] = [];
    const file = path.join(folder, 'log', 'functions.log');
    mkdirSync(path.dirname(file));
    symlinkSync('/dev/full', file);
    kept = createKeptLines(folder, { warn: (words) => warned.push(words) });
    for (const text of ['1', '2', '3']) kept.add(line(text));
    expect(warned).toEqual([expect.stringMatching(/^the log .*functions\.log cannot be written \(ENOSPC\)/)]);
    unlinkSync(file);
    kept.add(line('4'));
    expect(texts()).toEqual(['4']);
    expect(readFileSync(file, 'utf8')).toContain('(3 lines could not be written)');
  });

  it('is created again if somebody deletes it', async () => {
    const warned: string[] = [];
    kept = createKeptLines(folder, { warn: (words) => warned.push(words) });
    kept.add(line('1'));
    rmSync(path.join(folder, 'log'), { recursive: true });
    await vi.waitFor(
      async () => {
        kept?.add(line('2'));
        await sleep(50);
        expect(texts()).toContain('2');
      },
      { timeout: 5000 },
    );
    expect(warned).toEqual([]);
  });

  it('of a stack in memory is deleted when the stack ends', () => {
    kept = createKeptLines(undefined, { warn: () => undefined });
    const { file } = kept;
    kept.add(line('1'));
    expect(existsSync(file)).toBe(true);
    kept.close();
    expect(existsSync(path.dirname(file))).toBe(false);
  });
});

describe('the log on the terminal', () => {
  const shown: string[] = [];
  let nowMs = 0;
  let full: string | undefined;
  const trouble = (columns: number) => {
    shown.length = 0;
    const screen = {
      write: (words: string) => shown.push(words),
      columns: () => columns,
      nowMs: () => nowMs,
      fullFolder: () => full,
    };
    return showTrouble(screen, () => 'the.log');
  };

  it('shows failures, and nothing about successful calls', () => {
    const show = trouble(200);
    show('[chat] {"level":"INFO","message":"request","outcome":"ok"}');
    show('[chat] {"level":"WARN","message":"learned"}');
    show('environment chat#1 pid 7');
    show('[chat] {"time":1,"level":"ERROR","message":"no store","secret":"sk-1"}');
    show('environment chat#1 pid 7 ended (SIGKILL)');
    expect(shown).toEqual(['chat: no store', 'environment chat#1 pid 7 ended (SIGKILL)']);
  });

  it('shows a failure as one sentence, also for a full disk', () => {
    const show = trouble(200);
    const fault = '[chat] {"level":"ERROR","message":"fault","error":"InternalServerError"}';
    show(fault);
    full = '.relay';
    show(fault);
    full = undefined;
    expect(shown).toEqual([
      'chat: a call failed because of an error in the relay or its tables (InternalServerError)',
      'chat: the disk of .relay is full: free some space and try again',
    ]);
  });

  it('shows at most a few lines a minute, each short enough for a narrow terminal', () => {
    const show = trouble(40);
    const each = '[chat] 01jd3k5m7n9p1r3t5v7x9z1b3d Task timed out after 60.00 seconds';
    for (let count = 0; count < 100; count += 1) show(each);
    expect(shown).toHaveLength(5);
    expect(Math.max(...shown.map(({ length }) => length))).toBeLessThanOrEqual(40);
    expect(shown.at(-1)).toBe('see the.log for more');
    nowMs += 61_000;
    show(each);
    expect(shown).toHaveLength(6);
  });
});

describe('a data folder', () => {
  it('belongs to one stack until that releases it', () => {
    const release = claimDataFolder(folder);
    expect(() => claimDataFolder(folder)).toThrow(
      /which another stack is using: stop it, or set RELAY_DATA to another folder/,
    );
    release();
    claimDataFolder(folder)();
  });

  it.each([['/dev/null'], ['/dev/null/data'], ['/proc/relay/data']])(
    '%s, which is not writable, is reported by name',
    (name) => {
      expect(() => claimDataFolder(name)).toThrow(`RELAY_DATA is ${name}, which cannot be written (E`);
    },
  );
});

it('can be searched and counted like CloudWatch by the operators’ tool, even if it is longer than the lines in memory', async () => {
  const kept = createKeptLines(folder, { warn: () => undefined });
  const api = await startLogsApi('relay', kept);
  const startMs = Date.parse('2026-11-22T09:00:00Z');
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const log = createInsightsCallLog({
    place: async () => ({ groups: ['relay-chat'], endpoint: api.endpoint }),
    explain: (error) => error as Error,
    aws: async () => ({ region: 'local', credentials }),
    environment: {},
  });
  for (let at = 0; at < 5_000; at += 1) {
    const [status, outcome] = at % 10 === 0 ? [429, 'refused'] : [200, 'completed'];
    const text = JSON.stringify({ message: 'request', request_id: `r${at}`, status, outcome });
    kept.add({ atMs: startMs + at * 100, functionName: at === 7 ? 'ledger' : 'chat', text });
  }
  const conditions = [{ field: 'message', isOneOf: ['request'] }];
  const all = { fromMs: startMs, toMs: startMs + 600_000, conditions, limit: 3 };
  const refused = await log.search({ ...all, conditions: [...conditions, { field: 'status', is: 429 }] });
  expect(refused.lines.map(({ fields }) => fields['request_id'])).toEqual(['r4970', 'r4980', 'r4990']);
  const { counts } = await log.counts(all, { stepMs: 5 * 60_000, field: 'outcome' });
  expect(counts.toSorted((a, b) => b.count - a.count)).toEqual([
    { startMs, value: 'completed', count: 2_699 },
    { startMs: startMs + 300_000, value: 'completed', count: 1_800 },
    { startMs, value: 'refused', count: 300 },
    { startMs: startMs + 300_000, value: 'refused', count: 200 },
  ]);
  await api.close();
  kept.close();
});
