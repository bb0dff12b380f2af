import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = path.join(import.meta.dirname, '../..');
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'soak-test-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Run {
  exitCode: number | null;
  output: string;
  /** The findings, without the plots. */
  page: string;
}

async function soak(name: string, parameters: string[], signal?: (output: string) => boolean): Promise<Run> {
  const report = path.join(folder, name);
  const child = spawn(
    process.execPath,
    ['test/soak/main.ts', '--seed', '3', '--report', report, ...parameters],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  let seen = '';
  let sent = false;
  child.stdout.on('data', (piece: Buffer) => {
    seen += String(piece);
    if (!sent && signal?.(seen)) sent = child.kill('SIGINT');
  });
  const [output, [exitCode]] = await Promise.all([
    text(child.stdout),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  const page = path.join(report, 'README.md');
  return { exitCode, output, page: existsSync(page) ? readFileSync(page, 'utf8') : '' };
}

describe('a soak of a relay with one defect exits with 1', () => {
  it.each([
    ['lost-settle', 'no-usage', '0.4', /charge +\| call \d+ \(none, whole, .*is expired/],
    ['double-refund', 'no-usage', '0.3', /balance +\| soak-\w is off by/],
    [
      'clean-end',
      'stalled-reader',
      '0.8',
      /answer +\| call \d+ \(stalled-reader\): (says success|ends in order)/,
    ],
    ['wrong-cause', 'server-error', '0.4', /cause +\| call \d+ \(server-error\): refused with 429/],
    ['leaked-hold', 'kill-answering', '0.5', /hold +\| soak-\w has \d+ open/],
    ['stale-price', 'price-edit', '0.7', /price +\| call \d+: .*replaced \d+\.\d s before/],
  ])('%s', async (lie, fault, minutes, finding) => {
    const run = await soak(lie, ['--minutes', minutes, '--workers', '3', '--faults', fault, '--lie', lie]);
    expect(run.output).toMatch(/findings\./);
    expect(run.page).toMatch(finding);
    expect(run.exitCode).toBe(1);
  });
});

it('a soak without a defect exits with 0 under the same faults', async () => {
  const faults = 'no-usage,server-error,kill-answering,price-edit';
  const run = await soak('clean', ['--minutes', '0.7', '--workers', '3', '--faults', faults]);
  expect(run.output).toContain('Nothing was lost, doubled or answered wrong.');
  expect(run.exitCode).toBe(0);
});

it('Ctrl-C ends all started processes and leaves a report', async () => {
  const run = await soak('interrupted', ['--minutes', '5'], (output) => output.includes('faults  load'));
  expect(run.page).toContain('Ended by hand');
  expect(run.exitCode).toBe(130);
});
