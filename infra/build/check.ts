/** `npm run check`: all that must hold before a change lands, one line per step, until the first that fails. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

interface Step {
  name: string;
  command: [file: string, ...parameters: string[]];
  environment?: Record<string, string>;
}

const projectFolder = resolve(import.meta.dirname, '..', '..');

/** The tools are found first on the PATH: `infra/bootstrap/bootstrap.mjs` sees to that. */
function steps(synthesisFolder: string): Step[] {
  return [
    { name: 'format', command: ['oxfmt', '--check', '.'] },
    { name: 'lint', command: ['oxlint', '.'] },
    { name: 'types', command: ['tsc', '-p', '.'] },
    { name: 'dead code', command: ['knip'] },
    { name: 'tests', command: ['vitest', 'run'] },
    {
      name: 'synthesis with CloudFormation rules and cdk-nag',
      command: [process.execPath, 'infra/stack/app.ts'],
      environment: { CDK_OUTDIR: synthesisFolder, CDK_VALIDATION: 'true' },
    },
    { name: 'size and start', command: [process.execPath, 'test/bench/size.ts'] },
  ];
}

function passes(step: Step): boolean {
  const started = performance.now();
  const [file, ...parameters] = step.command;
  const { status, error, stdout, stderr } = spawnSync(file, parameters, {
    cwd: projectFolder,
    env: { ...process.env, ...step.environment },
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (status === 0) {
    console.log(`ok      ${step.name} (${seconds} s)`);
    return true;
  }
  console.log(`FAILED  ${step.name} (${seconds} s): ${step.command.join(' ')}\n`);
  console.log([stdout, stderr, error?.message].filter(Boolean).join('\n').trimEnd());
  return false;
}

const folder = mkdtempSync(join(tmpdir(), 'relay-check-'));
try {
  if (!steps(folder).every(passes)) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true });
}
