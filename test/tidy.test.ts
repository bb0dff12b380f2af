import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const root = path.join(import.meta.dirname, '..');

/** What each layer may import: other layers, and packages. `node:*` stands for Node's own modules. */
const layers: Record<string, { layers: string[]; packages: string[] }> = {
  'shared/wire': { layers: [], packages: ['zod'] },
  'shared/stream': { layers: [], packages: [] },
  'shared/convert': { layers: ['shared/wire', 'shared/stream'], packages: ['zod'] },
  'shared/billing': { layers: ['shared/wire', 'shared/stream'], packages: [] },
  'shared/config': { layers: ['shared/wire', 'shared/billing'], packages: ['zod'] },
  'shared/relay': {
    layers: ['shared/wire', 'shared/stream', 'shared/convert', 'shared/billing', 'shared/config'],
    packages: [],
  },
  'shared/adapters': {
    layers: [
      'shared/wire',
      'shared/stream',
      'shared/convert',
      'shared/billing',
      'shared/config',
      'shared/relay',
    ],
    packages: [
      'node:*',
      '@aws-sdk/*',
      '@middy/core',
      '@smithy/signature-v4',
      '@types/aws-lambda',
      'aws-lambda',
    ],
  },
  functions: { layers: ['shared/adapters', 'shared/relay', 'shared/config', 'shared/billing'], packages: [] },
  'infra/stack': {
    layers: ['shared/adapters/table-schema.ts'],
    packages: ['node:*', 'aws-cdk-lib', 'constructs', 'cdk-nag'],
  },
  'infra/local': {
    layers: ['shared/adapters/table-schema.ts'],
    packages: ['node:*', '@aws-sdk/*'],
  },
  'infra/ops': {
    layers: [
      'shared/wire',
      'shared/stream',
      'shared/convert',
      'shared/billing',
      'shared/config',
      'shared/relay',
      'shared/adapters',
    ],
    packages: ['node:*', '@aws-sdk/*', 'commander', 'zod'],
  },
};

interface Source {
  file: string;
  layer: string | undefined;
  text: string;
  imports: string[];
}

const sources: Source[] = ['shared', 'functions', 'infra', 'test']
  .flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
      path.join(folder, name),
    ),
  )
  .filter((file) => /\.(ts|mjs|cjs)$/.test(file))
  .map((file) => {
    const text = readFileSync(path.join(root, file), 'utf8');
    const imports = [
      ...text.matchAll(/(?:^(?:import|export)[^'";]*?from\s*|^import\s*|\bimport\(\s*)'([^']+)'/gm),
    ];
    const layer = Object.keys(layers).find((name) => file.startsWith(`${name}/`));
    return { file, layer, text, imports: imports.map((match) => match[1] ?? '') };
  });
const product = sources.filter(({ file }) => !file.startsWith('test/'));

function forbidden({ file, layer, imports }: Source): string[] {
  const rules = layers[layer ?? ''];
  if (!layer || !rules) return [];
  return imports.filter((name) => {
    if (name.startsWith('.')) {
      const target = path.join(path.dirname(file), name);
      return ![layer, ...rules.layers].some(
        (allowed) => target === allowed || target.startsWith(`${allowed}/`),
      );
    }
    return !rules.packages.some((allowed) =>
      allowed.endsWith('*')
        ? name.startsWith(allowed.slice(0, -1))
        : name === allowed || name.startsWith(`${allowed}/`),
    );
  });
}

describe('the code keeps to its design', () => {
  it('imports run one way between layers, and each layer uses only its own packages', () => {
    const broken = sources.flatMap((source) =>
      forbidden(source).map((name) => `${source.file} imports ${name}`),
    );
    expect(broken).toEqual([]);
  });

  it('the core sees no clock, no random, no environment and no network', () => {
    const core = product.filter(({ file }) =>
      /^shared\/(wire|stream|convert|billing|config|relay)\//.test(file),
    );
    const reach =
      /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bprocess\.env|\bfetch\(|\bsetTimeout\(|\bsetInterval\(|\bcrypto\./;
    // The page's examples are code for readers, in strings.
    const own = core.filter(({ file }) => file !== 'shared/relay/page-snippets.ts');
    expect(own.filter(({ text }) => reach.test(text)).map(({ file }) => file)).toEqual([]);
  });

  it('no source has a loose end', () => {
    // In halves, so that this file does not find itself.
    const halves = [
      'TO|DO',
      'FIX|ME',
      'X|XX',
      '@ts-|ignore',
      '@ts-|expect-error',
      'as |any\\b',
      ': |any\\b',
      '\\.on|ly\\(',
    ];
    const words = halves.map((half) => half.replace('|', ''));
    const loose = new RegExp(words.join('|'));
    expect(sources.filter(({ text }) => loose.test(text)).map(({ file }) => file)).toEqual([]);
    const printing = product.filter(
      ({ file, text }) => /^(shared|functions)\//.test(file) && text.includes('console.'),
    );
    expect(printing.map(({ file }) => file)).toEqual([]);
  });

  it('no folder is a barrel or a drawer', () => {
    const names = product.map(({ file }) => path.basename(file));
    expect(names.filter((name) => /^(index|utils?|helpers?|common|misc)\.ts$/.test(name))).toEqual([]);
  });

  it('files and functions stay small', async () => {
    const rules = ['-c', 'test/tidy.oxlintrc.json'];
    const run = promisify(execFile)(
      path.join(root, 'node_modules/.bin/oxlint'),
      [...rules, 'shared', 'functions', 'infra'],
      { cwd: root },
    );
    const output = await run.then(
      ({ stdout }) => stdout,
      (error: { stdout: string }) => error.stdout,
    );
    expect(output).toContain('Found 0 warnings and 0 errors');
    const lengths = product.map(({ text }) => text.split('\n').length).toSorted((a, b) => a - b);
    expect(lengths[Math.floor(lengths.length / 2)]).toBeLessThanOrEqual(80);
  });
});
