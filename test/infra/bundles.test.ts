import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  answeringFunctions,
  answersCalls,
  functionNames,
} from '../../infra/stack/constructs/function-descriptions.ts';
import { firstLoadBytes, firstLoadBytesMax } from '../bench/size.ts';
import { channelSetups } from '../../shared/upstreams/types/channel-types.ts';
import { buildFunctions, locateMetaFile, type BuildFolders } from '../../infra/build/build-functions.ts';

const handlerSource = `
import { createHash } from 'node:crypto';
export const digest = () => createHash('sha256').update('').digest('hex');
export const later = async () => (await import('./parts/rare.ts')).rare;
`;

let folders: BuildFolders;
let root: string;

const bundle = (): string => join(folders.outputFolder, 'sample');

/** Evaluates an expression over the bundle's exports in a new process that has only the given environment. */
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
  return JSON.parse(readFileSync(locateMetaFile(folders.outputFolder, 'sample'), 'utf8')) as Metafile;
}

/** Packages that look for credentials outside the environment. */
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
  test('uses Node’s own modules without importing them, which would load undici', () => {
    expect(evaluate('sample.digest()')).toMatch(/^e3b0c442/);
    const imported = Object.values(metafile().outputs).flatMap((output) =>
      output.imports.filter((item) => item.external === true),
    );
    expect(imported).toEqual([]);
    const loaded = `process.moduleLoadList.filter((name) => name.includes('undici'))`;
    expect(evaluate(`sample && ${loaded}`)).toEqual([]);
  });

  test('keeps rarely used code in files that are loaded on demand', () => {
    const { 'index.mjs': entry = '', ...others } = contents();
    expect(entry).not.toContain('seldom used');
    expect(Object.values(others).filter((text) => text.includes('seldom used'))).toHaveLength(1);
    expect(evaluate('sample.later()')).toBe('seldom used');
  });

  test('is built identically each time, and is not rewritten without a change', async () => {
    const before = contents();
    // The bundle of a removed function is deleted.
    mkdirSync(join(folders.outputFolder, 'former'));
    expect(await buildFunctions(folders)).toMatchObject([{ name: 'sample', changed: false }]);
    rmSync(bundle(), { recursive: true });
    expect(await buildFunctions(folders)).toMatchObject([{ name: 'sample', changed: true }]);
    expect(contents()).toEqual(before);
    expect(readdirSync(folders.outputFolder).toSorted()).toEqual(['meta', 'sample']);
  });
});

const project = join(import.meta.dirname, '..', '..');

/** `@aws-sdk/core/dist-es/index.js` is a file of `@aws-sdk/core`. */
const packageOf = (path: string): string => /^(@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? path;

describe('the bundles of the functions', () => {
  const outputFolder = join(project, 'dist');
  const built = new Map(
    functionNames.map((name) => [
      name,
      JSON.parse(readFileSync(locateMetaFile(outputFolder, name), 'utf8')) as Metafile,
    ]),
  );

  test('readers of table streams load no schemas of channel rows', () => {
    // Without `sideEffects` in package.json, `ledger` loaded 120 KB.
    expect(firstLoadBytes(built.get('ledger') as Metafile).first).toBeLessThan(60_000);
  });

  test.each(functionNames)(
    '%s contains no other credential provider and stays within the first-load limit',
    (name) => {
      const bundle = built.get(name) as Metafile;
      expect(providerCode(bundle)).toEqual([]);
      expect(firstLoadBytes(bundle).first).toBeLessThanOrEqual(
        // Clients wait for the cold starts of functions that answer calls.
        answersCalls(name) ? firstLoadBytesMax : 305_000,
      );
    },
  );

  test.each(functionNames)('%s contains no code of operators, infra or development', (name) => {
    const { outputs } = built.get(name) as Metafile;
    const kept = Object.values(outputs).flatMap(({ inputs: each }) => Object.entries(each));
    const inputs = kept.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([path]) => path);
    expect(inputs).toContain(`functions/${name}.ts`);
    // Replacements for package code exist only for functions.
    const isForeign = (path: string): boolean =>
      /^(infra\/(?!build\/instead\/)|shared\/operate\/)/.test(path);
    expect(inputs.filter(isForeign)).toEqual([]);

    const bundled = new Set(
      inputs
        .filter((path) => path.includes('node_modules/'))
        .map((path) => packageOf(String(path.split('node_modules/').at(-1)))),
    );
    const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { dev?: boolean }>;
    };
    expect([...bundled].filter((each) => packages[`node_modules/${each}`]?.dev === true)).toEqual([]);
  });

  test.each(answeringFunctions)('%s contains no part of a channel type that only operators need', (name) => {
    // The row rules, the model list and the questions of a type.
    const setupWords = Object.values(channelSetups).flatMap(({ questions, models }) =>
      [questions.map(({ question }) => question), 'unlisted' in models ? models.unlisted : []].flat(),
    );
    expect(setupWords.length).toBeGreaterThan(3);
    const folder = join(outputFolder, name);
    const bundled = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
    expect(setupWords.filter((words) => bundled.some((text) => text.includes(words)))).toEqual([]);
  });
});
