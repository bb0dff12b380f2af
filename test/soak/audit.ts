/** Runs the product's own audit as an operator does. The report shows its result next to the checker's. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';

export interface AuditOutcome {
  exitCode: number;
  output: string;
}

const root = path.resolve(import.meta.dirname, '../..');

/** @param lossLines log lines of closes that failed to be written; the audit writes them first */
export async function runAudit(tablesEndpoint: string, lossLines: readonly string[]): Promise<AuditOutcome> {
  const repair = lossLines.length > 0 ? ['--repair', '-', '--yes'] : [];
  const child = spawn(process.execPath, ['infra/ops/cli/main.ts', 'audit', ...repair], {
    cwd: root,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, AWS_ENDPOINT_URL_DYNAMODB: tablesEndpoint, NO_COLOR: '1' },
  });
  child.stdin.end(lossLines.map((line) => `${line}\n`).join(''));
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { exitCode: code ?? 1, output: `${stdout}${code === 0 ? '' : stderr}`.trim() };
}
