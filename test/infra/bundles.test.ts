import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { functionNames } from '../../infra/stack/constructs/function-descriptions.ts';
import { firstLoadBytes, firstLoadBytesMax } from '../bench/size.ts';
import { channelSetups } from '../../shared/upstreams/types/channel-types.ts';
import { buildFunctions, metaFile, type BuildFolders } from '../../infra/build/build-functions.ts';

const handlerSource = `
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createHash } from 'node:crypto';
const client = new DynamoDBClient({});
export const credentials = () => client.config.credentials();
export const digest = () => createHash('sha256').update('').digest('hex');
export const later = async () => (await import('./parts/rare.ts')).rare;
`;

let folders: BuildFolders;
let root: string;

const bundle = (): string => join(folders.outputFolder, 'sample');

/** Runs an expression over the bundle's exports in a fresh process; only the given environment is set. */
function evaluate(expression: string, environment: Record<string, string> = {}): unknown {
  const code = `const sample = await import(${JSON.stringify(join(bundle(), 'index.mjs'))});
    console.log(JSON.stringify(await (${expression})));`;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    env: { AWS_REGION: 'us-east-1', ...environment },
    encoding: 'utf8',
  });
  return JSON.parse(output);
}

function metafile(): Metafile {
  return JSON.parse(readFileSync(metaFile(folders.outputFolder, 'sample'), 'utf8')) as Metafile;
}

/** Packages that would look for credentials elsewhere than in the environment. */
function providerCode(built: Metafile): string[] {
  return Object.keys(built.inputs).filter((path) =>
    /node_modules.*(credential-provider-(?!env)|token-providers|nested-clients)/.test(path),
  );
}

function contents(): Record<string, string> {
  const files = readdirSync(bundle()).toSorted();
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(bundle(), name), 'utf8')]));
}

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'relay-build-'));
  folders = { functionsFolder: join(root, 'functions'), outputFolder: join(root, 'dist') };
  mkdirSync(join(folders.functionsFolder, 'parts'), { recursive: true });
  writeFileSync(join(folders.functionsFolder, 'sample.ts'), handlerSource);
  writeFileSync(
    join(folders.functionsFolder, 'parts', 'rare.ts'),
    `export const rare: string = 'seldom used';\n`,
  );
  await buildFunctions(folders);
});

afterAll(() => {
  rmSync(root, { recursive: true });
});

describe('a bundle', () => {
  test('takes its credentials from the environment and carries no other provider', () => {
    const environment = {
      AWS_ACCESS_KEY_ID: 'id',
      AWS_SECRET_ACCESS_KEY: 'secret',
      AWS_SESSION_TOKEN: 'token',
    };
    expect(evaluate('sample.credentials()', environment)).toMatchObject({
      accessKeyId: 'id',
      secretAccessKey: 'secret',
      sessionToken: 'token',
    });
    const providers = providerCode(metafile());
    expect(providers).toEqual([]);
  });

  test('uses Node’s own modules without importing them, which would load undici', () => {
    expect(evaluate('sample.digest()')).toMatch(/^e3b0c442/);
    const imported = Object.values(metafile().outputs).flatMap((output) =>
      output.imports.filter((item) => item.external === true),
    );
    expect(imported).toEqual([]);
    const loaded = `process.moduleLoadList.filter((name) => name.includes('undici'))`;
    expect(evaluate(`sample && ${loaded}`)).toEqual([]);
  });

  test('keeps rare code in files that are read when they are needed', () => {
    const { 'index.mjs': entry = '', ...others } = contents();
    expect(entry).not.toContain('seldom used');
    expect(Object.values(others).filter((text) => text.includes('seldom used'))).toHaveLength(1);
    expect(evaluate('sample.later()')).toBe('seldom used');
  });

  test('comes out the same every time and is then left alone', async () => {
    const before = contents();
    expect(await buildFunctions(folders)).toMatchObject([{ name: 'sample', changed: false }]);
    rmSync(bundle(), { recursive: true });
    expect(await buildFunctions(folders)).toMatchObject([{ name: 'sample', changed: true }]);
    expect(contents()).toEqual(before);
  });

  test('goes when its function is gone, and half-written ones never appear', async () => {
    mkdirSync(join(folders.outputFolder, 'former'));
    await buildFunctions(folders);
    expect(readdirSync(folders.outputFolder).toSorted()).toEqual(['meta', 'sample']);
  });
});

test('the real functions carry no other provider, nothing that only operators need, and keep the limit of what is loaded at the start', async () => {
  const outputFolder = join(root, 'real');
  await buildFunctions({ functionsFolder: join(import.meta.dirname, '..', '..', 'functions'), outputFolder });
  for (const name of functionNames) {
    const built = JSON.parse(readFileSync(metaFile(outputFolder, name), 'utf8')) as Metafile;
    expect(providerCode(built)).toEqual([]);
    expect(firstLoadBytes(built).first).toBeLessThanOrEqual(firstLoadBytesMax);
  }
  // Only configuration and operators need a type's setup: the rules of its rows, its model list, its questions.
  const setupWords = Object.values(channelSetups).flatMap(({ questions, models }) =>
    [questions.map(({ question }) => question), 'unlisted' in models ? models.unlisted : []].flat(),
  );
  expect(setupWords.length).toBeGreaterThan(3);
  for (const name of ['chat', 'responses']) {
    const bundled = readdirSync(join(outputFolder, name)).map((file) =>
      readFileSync(join(outputFolder, name, file), 'utf8'),
    );
    expect(setupWords.filter((words) => bundled.some((text) => text.includes(words)))).toEqual([]);
  }
});
