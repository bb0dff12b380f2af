import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import type { Mutant } from '../mutants/mutant.ts';
import { mutants } from '../mutants/mutants.ts';

const root = path.join(import.meta.dirname, '../..');
const folder = mkdtempSync(path.join(tmpdir(), 'relay-mutants-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface Report {
  testResults: { assertionResults: { fullName: string; status: string }[] }[];
}

/** Returns the full names of the file's tests that fail with the mutant. */
async function failing(mutant: string, { noticed }: Mutant): Promise<string[]> {
  const report = path.join(folder, 'report.json');
  const parameters = ['run', '--reporter=json', `--outputFile=${report}`, noticed];
  // Vitest exits with 1 if a test fails.
  await promisify(execFile)(path.join(root, 'node_modules/.bin/vitest'), parameters, {
    cwd: root,
    env: { ...process.env, RELAY_MUTANT: mutant },
    maxBuffer: 16 * 1024 * 1024,
  }).catch(() => {});
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  return testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'failed')
    .map(({ fullName }) => fullName);
}

it.each(Object.entries(mutants))('%s is noticed', async (name, mutant) => {
  const failed = await failing(name, mutant);
  expect(failed.filter((test) => mutant.by.test(test))).not.toEqual([]);
});
