/**
 * Plain `cdk deploy` as a newcomer types it: from a copy of the repository without any build output, with whatever
 * old Node is first on the PATH, against a loopback AWS.
 */
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { functionNames } from '../../infra/stack/constructs/function-descriptions.ts';
import { LoopbackAws } from './loopback/aws.ts';

const projectFolder = resolve(import.meta.dirname, '..', '..');
const notCopied = new Set(['node_modules', 'dist', 'cdk.out', '.git', '.relay', 'coverage']);

function copyWithoutOutput(target: string): void {
  cpSync(projectFolder, target, {
    recursive: true,
    filter: (source) => !notCopied.has(source.slice(projectFolder.length + 1)),
  });
  symlinkSync(join(projectFolder, 'node_modules'), join(target, 'node_modules'));
}

/** The PATH without the repository's own tools: the machine's Node comes first, as in a fresh terminal. */
function pathOfTerminal(): string {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.filter((folder) => !folder.includes('node_modules')).join(delimiter);
}

interface Ended {
  exitCode: number | null;
  output: string;
}

async function run(command: string, args: string[], folder: string, aws: string): Promise<Ended> {
  const child = spawn(command, args, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 100_000,
    env: {
      PATH: pathOfTerminal(),
      HOME: folder,
      AWS_ENDPOINT_URL: aws,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'AKIALOOPBACK',
      AWS_SECRET_ACCESS_KEY: 'loopback',
      AWS_EC2_METADATA_DISABLED: 'true',
      npm_config_update_notifier: 'false',
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const exitCode = await new Promise<number | null>((ended, reject) => {
    child.on('error', reject).on('close', ended);
  });
  return { exitCode, output };
}

let folder: string;
let endpoint: string;
const aws = new LoopbackAws();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'relay-deploy-'));
  copyWithoutOutput(folder);
  endpoint = await aws.listen();
});

afterAll(async () => {
  await aws.close();
  rmSync(folder, { recursive: true });
});

test('cdk deploy builds, synthesizes and uploads everything from a checkout that was never built', async () => {
  expect(existsSync(join(folder, 'dist'))).toBe(false);
  const cdk = join('node_modules', 'aws-cdk', 'bin', 'cdk');
  const { exitCode, output } = await run(
    'node',
    [cdk, 'deploy', '--require-approval', 'never'],
    folder,
    endpoint,
  );
  expect(output).toContain('relay.BaseUrl');
  expect(exitCode).toBe(0);
  expect(aws.calls.filter((call) => call.startsWith('undefined'))).toEqual([]);

  const stack = aws.stacks.named('relay');
  expect(stack?.status).toBe('CREATE_COMPLETE');
  const resources = Object.values(stack?.template?.Resources ?? {});
  const functions = resources.filter((resource) => resource.Type === 'AWS::Lambda::Function');
  expect(functions).toHaveLength(functionNames.length);
  for (const { Properties } of functions) {
    const code = Properties?.Code as { S3Key: string } | undefined;
    const archive = aws.objects.get(code?.S3Key ?? '');
    expect(archive?.includes('index.mjs'), `bundle ${code?.S3Key}`).toBe(true);
  }
}, 120_000);
