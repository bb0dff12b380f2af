/** Tests the parts of the nightly run on AWS that need no account. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { runInNewContext } from 'node:vm';
import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { readOptions, resolveStage } from '../../infra/stack/options/read-options.ts';
import { generateSecretKey } from '../../shared/adapters/system/node-ports.ts';
import { readPage, root } from '../docs/pages.ts';
import { workflowOf, yaml } from '../infra/workflows.ts';
import { findShortfall, sendLoad } from './load.ts';
import { readTranscripts, renderPage } from './transcript-page.ts';

let server: Server | undefined;
afterEach(() => {
  server?.close();
  server?.closeAllConnections();
});

async function listen(listener: Parameters<typeof createServer>[1]): Promise<string> {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const templateOf = (file: string): unknown => yaml.parse(readPage(file));

describe('the workflow', () => {
  const { jobs } = workflowOf('nightly-aws');

  it('tests every front door that has options, on a disposable stage', () => {
    const files = readdirSync(path.join(root, '.github/nightly')).filter((file) => file.endsWith('.json'));
    const doors = files.map((file) => path.basename(file, '.json'));
    expect(jobs['steps']?.strategy?.matrix['door']?.toSorted()).toEqual(doors.toSorted());
    for (const door of doors) {
      const options: unknown = JSON.parse(readPage(`.github/nightly/${door}.json`));
      expect(readOptions(resolveStage(`nightly-${door}`), options)).toMatchObject({ disposable: true });
    }
  });

  it('removes the stack after a failure or a time-out, and leaves time for that', () => {
    const steps = jobs['steps']?.steps ?? [];
    const removal = steps.find(({ run }) => run?.endsWith('--from last'));
    expect(removal?.if).toBe('failure() || cancelled()');
    const minutes = steps.map((step) => (step as { 'timeout-minutes'?: number })['timeout-minutes'] ?? 0);
    expect(minutes.reduce((sum, each) => sum + each)).toBeLessThan(jobs['steps']?.['timeout-minutes'] ?? 0);
  });

  it('uploads only the transcript of a run', () => {
    const uploads = jobs['steps']?.steps.filter(({ uses }) => uses?.startsWith('actions/upload-artifact@'));
    expect(uploads?.map(({ with: inputs }) => inputs?.['path'])).toEqual([
      'first-deployment/nightly-*/transcript.md',
    ]);
  });

  it('gives the page a folder for each door, even if there is only one', () => {
    const [download] = jobs['page']?.steps.filter(({ uses }) => uses?.includes('/download-artifact@')) ?? [];
    expect(download?.with).toEqual({ path: 'transcripts', 'merge-multiple': true });
    const folder = mkdtempSync(path.join(tmpdir(), 'relay-transcripts-'));
    mkdirSync(path.join(folder, 'nightly-api'));
    writeFileSync(path.join(folder, 'nightly-api', 'transcript.md'), 'text');
    expect(readTranscripts(folder)).toEqual({ api: 'text' });
    rmSync(folder, { recursive: true });
  });

  it('assumes a role that no other repository, branch or service can assume', () => {
    const { Resources } = templateOf('.github/nightly/account.yml') as {
      Resources: { Nightly: { Properties: { AssumeRolePolicyDocument: { Statement: unknown[] } } } };
    };
    expect(Resources.Nightly.Properties.AssumeRolePolicyDocument.Statement).toMatchObject([
      {
        Action: 'sts:AssumeRoleWithWebIdentity',
        Condition: {
          StringEquals: {
            'token.actions.githubusercontent.com:aud': 'sts.amazonaws.com',
            'token.actions.githubusercontent.com:sub': {
              'Fn::Sub': 'repo:${Repository}:environment:nightly-aws',
            },
          },
        },
      },
    ]);
  });

  it('accepts a repository with ids, as GitHub names it since July 2026, or without, but no wildcard', () => {
    const { Parameters } = templateOf('.github/nightly/account.yml') as {
      Parameters: { Repository: { AllowedPattern: string } };
    };
    const allowed = new RegExp(`^(?:${Parameters.Repository.AllowedPattern})$`);
    const given = [
      'acme/relay',
      'acme@12/relay@34',
      'acme@12/relay',
      'acme/*',
      'acme@*/relay@34',
      'acme/relay:*',
    ];
    expect(given.filter((each) => allowed.test(each))).toEqual(['acme/relay', 'acme@12/relay@34']);
  });
});

it('the page reads the keys of the customers that call', () => {
  const pattern = /grep -oE '([^']+)'/.exec(readPage('docs/first-deployment.md'))?.[1] ?? 'none';
  const key = generateSecretKey();
  const printed = `Key (save it now):\n  ${key}\n`;
  expect(execFileSync('grep', ['-oE', pattern], { input: printed, encoding: 'utf8' })).toBe(`${key}\n`);
});

describe('the load', () => {
  const load = { keys: ['a', 'b'], rate: 100, seconds: 0.3 };

  it('sends calls with the keys of all customers, and passes if all calls complete', async () => {
    const keys = new Set<string>();
    const url = await listen((request, response) => {
      keys.add(String(request.headers.authorization));
      response.end('data: {}\n\ndata: [DONE]\n\n');
    });
    const figures = await sendLoad({ ...load, url });
    expect(figures.sent).toBe(28);
    expect(figures.ends).toEqual({ complete: 28 });
    expect(keys).toEqual(new Set(['Bearer a', 'Bearer b']));
    expect(findShortfall(figures, { ...load, url })).toBeUndefined();
  });

  it('counts refused, cut and broken calls, and fails', async () => {
    let count = 0;
    const url = await listen((_, response) => {
      if (++count === 1) response.writeHead(503).end();
      else if (count === 2) response.end('data: {}\n\n');
      else if (count === 3) response.destroy();
      else response.end('data: [DONE]\n\n');
    });
    const figures = await sendLoad({ ...load, url });
    expect(figures.ends).toEqual({ '503': 1, cut: 1, ECONNRESET: 1, complete: 25 });
    expect(findShortfall(figures, { ...load, url })).toBe('3 of 28 calls did not end as they should');
  });

  it('fails when answers get slower and slower', () => {
    const figures = { sent: 100, ends: { complete: 100 }, times: [], took: 700 };
    expect(findShortfall(figures, { ...load, url: '', seconds: 600 })).toContain('instead of 600');
  });
});

describe('the vendor in the account', () => {
  const { Resources } = templateOf('test/aws/vendor.yml') as {
    Resources: { Vendor: { Properties: { Code: { ZipFile: string } } } };
  };
  const code = Resources.Vendor.Properties.Code.ZipFile;
  /** Lambda's wrapper for a streaming handler. */
  const awslambda = {
    streamifyResponse: (handler: unknown) => handler,
    HttpResponseStream: {
      from: (output: PassThrough, head: { headers: object }) => Object.assign(output, { head }),
    },
  };
  const exports: { handler?: (event: object, output: PassThrough) => Promise<void> } = {};
  // Ends every sleep at once.
  const require = (name: string): unknown =>
    name === 'node:timers/promises'
      ? { setTimeout: async () => undefined }
      : createRequire(import.meta.url)(name);
  runInNewContext(code, { awslambda, exports, require, Buffer, Date, JSON });

  const listenAsVendor = (): Promise<string> =>
    listen((request, response) => {
      const answer = async (): Promise<void> => {
        const output = new PassThrough();
        await exports.handler?.({ body: await text(request), isBase64Encoded: false }, output);
        const { head } = output as PassThrough & { head?: { headers: Record<string, string> } };
        response.writeHead(200, head?.headers);
        output.pipe(response);
      };
      void answer();
    });

  it('streams a number a second in OpenAI’s format, and fits into a template', async () => {
    const client = new OpenAI({ baseURL: await listenAsVendor(), apiKey: 'any', maxRetries: 0 });
    const call = {
      model: 'gpt-4o-mini',
      messages: [{ role: 'user' as const, content: 'Count for 3 seconds.' }],
    };
    const words: string[] = [];
    let tokens = 0;
    for await (const { choices, usage } of await client.chat.completions.create({ ...call, stream: true })) {
      words.push(choices[0]?.delta.content ?? '');
      tokens = usage?.completion_tokens ?? tokens;
    }
    expect(words.join('')).toBe('Hello 1 2 3');
    expect(tokens).toBe(4);
    expect((await client.chat.completions.create(call)).choices[0]?.message.content).toBe('Hello');
    // CloudFormation's limit.
    expect(code.length).toBeLessThan(4096);
  });
});

describe('the page of a night', () => {
  const transcript = (...results: string[]): string =>
    results
      .map((result, index) => `## ${index + 1}. Step ${index + 1}\n\nsk-secret\n\n${result}\n`)
      .join('\n');

  it('lists the last result of each step at each door, and nothing else from a transcript', () => {
    const done = '**Step 1 done** in 3.0 minutes (expected 5).';
    const failed = '**Step 2 failed** after 7.5 minutes (expected 5): block 1 ended with 1, expected 0.';
    const again = '## 2. Step 2\n\n**Step 2 done** in 4.0 minutes (expected 5).\n';
    const page = renderPage(
      { api: `${transcript(done, failed)}\n${again}`, ecs: transcript(done, failed), none: '' },
      { commit: 'abc', day: '2026-12-01' },
    );
    expect(page).toContain('| 1. Step 1 | 3.0 | 3.0 | not run |');
    expect(page).toContain('| 2. Step 2 | 4.0 | **failed** after 7.5 | not run |');
    expect(page).not.toContain('sk-secret');
  });
});
