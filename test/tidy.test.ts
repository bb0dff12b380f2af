import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { importLaw, packageLaw } from './tidy/import-law.ts';

const root = path.join(import.meta.dirname, '..');

/** Arrows that are still to be turned: the list only shrinks. */
const open = new Set<string>(
  JSON.parse(readFileSync(path.join(import.meta.dirname, 'tidy', 'open.json'), 'utf8')) as string[],
);

interface Source {
  file: string;
  folder: string;
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
    return { file, folder: path.dirname(file), text, imports: imports.map((match) => match[1] ?? '') };
  });
const product = sources.filter(({ file }) => !file.startsWith('test/'));

const within = (folder: string, name: string): boolean => folder === name || folder.startsWith(`${name}/`);

function forbidden({ file, folder, imports }: Source): string[] {
  const allowed = importLaw[folder];
  if (!allowed) return [];
  const packages = Object.entries(packageLaw).flatMap(([name, list]) => (within(folder, name) ? list : []));
  return imports.filter((name) => {
    if (name.startsWith('.')) {
      const target = path.dirname(path.join(path.dirname(file), name));
      return target !== folder && !allowed.includes(target);
    }
    return !packages.some((each) =>
      each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : name === each || name.startsWith(`${each}/`),
    );
  });
}

describe('the code keeps to its design', () => {
  it('imports run one way between layers, and each layer uses only its own packages', () => {
    const broken = sources.flatMap((source) =>
      forbidden(source).map((name) => `${source.file} imports ${name}`),
    );
    if (process.env['TIDY_WRITE'])
      writeFileSync(
        path.join(import.meta.dirname, 'tidy', 'open.json'),
        JSON.stringify(broken, undefined, 1),
      );
    expect(broken.filter((each) => !open.has(each))).toEqual([]);
  });

  it('the core sees no clock, no random, no environment and no network', () => {
    const core = product.filter(({ file }) =>
      /^shared\/(wire|stream|endpoints|upstreams|billing|config|relay|operate)\//.test(file),
    );
    const reach =
      /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bprocess\.env|\bfetch\(|\bsetTimeout\(|\bsetInterval\(|\bcrypto\./;
    // The page's examples are code for readers, in strings.
    const own = core.filter(({ file }) => file !== 'shared/relay/page/page-snippets.ts');
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
