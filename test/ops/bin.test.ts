import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const clone = path.resolve(import.meta.dirname, '../..');
let folder: string;
let registry: Server;
/** Requests to the registry. */
const fetched: string[] = [];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'relay-bin-'));
  writeFileSync(
    path.join(folder, 'rows.json'),
    '{"charges": [{"id": 1, "type": "non-billing", "models": ["m"]}]}',
  );
  registry = createServer(({ url = '' }, response) => {
    fetched.push(url);
    response.writeHead(404).end('{}');
  });
  await once(registry.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => {
  registry.close();
  registry.closeAllConnections();
  rmSync(folder, { recursive: true });
});

async function run(cwd: string, file: string, ...words: string[]) {
  return runWith('global', { cwd, file, words });
}

/** @param prefix the folder of npm's links */
async function runWith(prefix: string, { cwd, file, words }: { cwd: string; file: string; words: string[] }) {
  const { npm_lifecycle_event: _, ...variables } = process.env;
  const address = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`;
  const npm = { npm_config_registry: address, npm_config_prefix: path.join(folder, prefix) };
  const child = spawn(file, words, {
    cwd,
    env: { ...variables, ...npm, npm_config_update_notifier: 'false' },
  });
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number]>,
  ]);
  return { code, output, errors };
}

const check = ['check', '--file', 'rows.json', '--alone', '--json'];
const nothingFound = { rows: 1, problems: [], warnings: [expect.anything()] };

describe('relay-ops', () => {
  it('runs in any folder after `npm link`, reads the files in it, and downloads nothing', async () => {
    expect(await run(clone, 'npm', 'link', '--no-audit', '--no-fund')).toMatchObject({ code: 0 });
    const linked = path.join(folder, 'global', 'bin', 'relay-ops');
    const { code, output } = await run(folder, linked, ...check);
    expect({ code, value: JSON.parse(output) as unknown }).toMatchObject({ code: 0, value: nothingFound });
    const wrong = await run(folder, linked, 'cofnig');
    expect(wrong).toMatchObject({ code: 2, output: '' });
    expect(wrong.errors).toContain('Did you mean config?');
    expect(fetched).toEqual([]);
  });

  it('runs by `npx --no relay-ops` in the clone and its subfolders, without output of npm, and downloads nothing', async () => {
    for (const cwd of [clone, path.join(clone, 'docs')]) {
      const { code, output } = await run(cwd, 'npx', '--no', 'relay-ops', 'help', 'check');
      expect(code).toBe(0);
      expect(output).toContain('Usage: npx --no relay-ops check ');
    }
    const help = await run(clone, 'npx', '--no', 'relay-ops', 'help');
    expect(help).toMatchObject({ code: 0, output: expect.stringContaining('Manage the customers') });
    expect(fetched).toEqual([]);
  });

  it('is not found by `npx --no relay-ops` outside the clone, so no foreign package runs', async () => {
    const { code, output } = await runWith('unlinked', {
      cwd: tmpdir(),
      file: 'npx',
      words: ['--no', 'relay-ops', 'help'],
    });
    expect({ code, output }).toEqual({ code: 1, output: '' });
  });
});
