import { readFileSync } from 'node:fs';
import path from 'node:path';
import { buildSync } from 'esbuild';
import { describe, expect, it } from 'vitest';

interface Locked {
  version: string;
  integrity?: string;
  resolved?: string;
  dev?: boolean;
  optional?: boolean;
  inBundle?: boolean;
}

const read = (file: string): string => readFileSync(path.join(import.meta.dirname, '..', '..', file), 'utf8');

type Wanted = Record<'dependencies' | 'devDependencies' | 'optionalDependencies', Record<string, string>>;

const lockedIn = (folder: string): [at: string, package_: Locked][] =>
  Object.entries(
    (JSON.parse(read(`${folder}package-lock.json`)) as { packages: Record<string, Locked> }).packages,
  ).filter(([at]) => at !== '');
const { dependencies } = JSON.parse(read('package.json')) as Wanted;
const nameOf = (at: string): string => at.slice(at.lastIndexOf('node_modules/') + 'node_modules/'.length);

describe.each(['', 'test/teams/'])('the packages of ./%s', (folder) => {
  const {
    dependencies: own,
    devDependencies,
    optionalDependencies,
  } = JSON.parse(read(`${folder}package.json`)) as Wanted;
  const locked = lockedIn(folder);

  it('are required in exact versions', () => {
    const wanted = Object.entries({ ...own, ...devDependencies, ...optionalDependencies });
    expect(wanted.filter(([, version]) => !/^(npm:[@\w/-]+@)?\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });

  it('are locked by hash; a package inside another package is locked with that package', () => {
    const open = locked.filter(([, { integrity, inBundle }]) => integrity === undefined && !inBundle);
    expect(open.map(([at]) => at)).toEqual([]);
    const hashes = locked.flatMap(([at, { integrity = 'sha512-' }]) =>
      integrity.startsWith('sha512-') ? [] : [at],
    );
    expect(hashes).toEqual([]);
  });

  it('come from the registry of the installing machine, and run no install scripts', () => {
    expect(locked.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
    const settings = read(`${folder}.npmrc`).split('\n');
    expect(settings).toContain('ignore-scripts=true');
    expect(settings).toContain('save-exact=true');
  });
});

describe('the packages', () => {
  it('of the functions are exactly these, each with a decision', () => {
    expect(Object.keys(dependencies ?? {})).toEqual([
      '@aws-sdk/client-dynamodb',
      '@aws-sdk/lib-dynamodb',
      '@aws-sdk/util-dynamodb',
      '@middy/core',
      'eventsource-parser',
      'hono',
      'zod',
    ]);
  });

  it('that functions depend on are at most 40, and none duplicates a module of Node', () => {
    const shipped = lockedIn('')
      .filter(([, { dev, optional }]) => !dev && !optional)
      .map(([at]) => nameOf(at));
    expect(shipped.length).toBeLessThanOrEqual(40);
    expect(
      shipped.filter((name) => ['axios', 'dotenv', 'lodash', 'node-fetch', 'uuid'].includes(name)),
    ).toEqual([]);
  });

  it('that the construct imports are only aws-cdk-lib and constructs, because the tarball has no dependencies', () => {
    const { metafile } = buildSync({
      entryPoints: ['infra/stack/relay.ts', 'infra/stack/edge/relay-edge.ts'],
      // The package bundles this file with its imports.
      external: ['*/prop-problems.ts'],
      packages: 'external',
      bundle: true,
      write: false,
      outdir: 'unwritten',
      format: 'esm',
      platform: 'node',
      metafile: true,
    });
    const imported = Object.values(metafile.outputs).flatMap(({ imports }) =>
      imports.map((each) => each.path),
    );
    const foreign = imported.filter((name) => !/^(aws-cdk-lib(\/|$)|constructs$|node:|\.)/.test(name));
    expect(foreign).toEqual([]);
    expect(imported.length).toBeGreaterThan(10);
  });

  it('are installed from the lock file', () => {
    // `npm ci` uses the lock file unchanged.
    expect(read('infra/bootstrap/prepare.mjs')).toContain("npm(['ci', ");
  });
});
