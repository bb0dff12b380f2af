/** The steps of a release: the changelog, the version with its tag, and the commands of the workflows. */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readPage, root } from '../docs/pages.ts';
import { runProgram } from './run-program.ts';
import { workflowOf, type Workflow } from './workflows.ts';

const runs = ({ jobs }: Workflow, ...names: string[]): string[] =>
  names.flatMap((name) => jobs[name]?.steps.flatMap(({ run = [] }) => run) ?? []);

const needsOf = ({ jobs }: Workflow, name: string): string[] => [jobs[name]?.needs ?? []].flat();

describe('the workflows', () => {
  it('run all commands of .ci/run in parallel jobs, and require all jobs', () => {
    const commands = readPage('.ci/run')
      .split('\n')
      .filter((line) => line.startsWith('npm '));
    expect(commands).toHaveLength(2);
    const ci = workflowOf('ci');
    // The image needs a Docker daemon, and apps of other teams a registry. Everything else runs anywhere.
    const anywhere = needsOf(ci, 'ci').filter((name) => name !== 'image' && name !== 'adopters');
    const given = runs(ci, ...anywhere).map((run) => run.replace(/ -- --shard=\S+ \S+ \S+$/, ''));
    expect(given.toSorted()).toEqual(commands.toSorted());
    expect(runs(ci, 'ci').join()).toContain('success success');
  });

  it('test a release before packing it, and grant write permissions only to a job that runs no code of packages', () => {
    const release = workflowOf('release');
    const built = runs(release, 'build');
    const at = (command: string) => built.findIndex((run) => run.includes(command));
    expect(at('.ci/run')).toBeGreaterThan(at('changelog.mjs notes'));
    expect(at('npm run package')).toBeGreaterThan(at('.ci/run'));
    expect(release.permissions).toEqual({ contents: 'read' });
    for (const [name, { permissions = {}, steps }] of Object.entries(release.jobs)) {
      if (!Object.values(permissions).includes('write')) continue;
      expect(needsOf(release, name)).toContain('build');
      expect(JSON.stringify(steps)).not.toMatch(/checkout|np[mx] /);
    }
    expect(needsOf(release, 'release')).toEqual(['build', 'check-package']);
  });

  it('compare the checksums of every file of a release and attest it before publishing', () => {
    const steps = workflowOf('release').jobs['release']?.steps ?? [];
    const at = (part: string) => steps.findIndex((step) => JSON.stringify(step).includes(part));
    const attest = at('actions/attest-build-provenance');
    expect(attest).toBeGreaterThan(at('sha256sum --check'));
    expect(at('gh release create')).toBeGreaterThan(attest);
    expect(at('sha256sum --check')).toBeGreaterThan(at('actions/download-artifact'));
    expect(steps[attest]?.with).toEqual({ 'subject-path': 'relay-*\nSHA256SUMS\n' });
    expect(workflowOf('release').jobs['release']?.permissions).toEqual({
      contents: 'write',
      'id-token': 'write',
      attestations: 'write',
    });
  });
});

it('docs and examples name the files and images of this version', () => {
  const { version } = JSON.parse(readPage('package.json')) as { version: string };
  const list = ['ls-files', 'README.md', 'docs/*.md', '.github/*.md', 'examples', ':!docs/CHANGELOG.md'];
  const files = execFileSync('git', list, { cwd: root, encoding: 'utf8' }).trim().split('\n');
  const found = files.flatMap((file) =>
    Array.from(
      readPage(file).matchAll(/(?:\brelay-|\/server:v)(\d+\.\d+\.\d+)/g),
      ([, named]) => `${file} ${named}`,
    ),
  );
  expect(found.length).toBeGreaterThan(10);
  expect(found.filter((each) => !each.endsWith(` ${version}`))).toEqual([]);
});

describe('a release', () => {
  let folder: string;
  const changelog = '# Changelog\n\n## Unreleased\n\n- A thing.\n\n## 0.1.0 - 2026-01-02\n\n- The first.\n';
  const git = {
    GIT_AUTHOR_NAME: 'a',
    GIT_AUTHOR_EMAIL: 'a@example.com',
    GIT_COMMITTER_NAME: 'a',
    GIT_COMMITTER_EMAIL: 'a@example.com',
  };
  const run = async (line: string) => {
    const env = { PATH: process.env['PATH'], HOME: folder, npm_config_update_notifier: 'false', ...git };
    return runProgram('sh', ['-c', line], { cwd: folder, env });
  };
  const read = (file: string) => readFileSync(path.join(folder, file), 'utf8');
  const write = (file: string, text: string) => {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    writeFileSync(path.join(folder, file), text);
  };

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'relay-release-'));
    const { scripts } = JSON.parse(readPage('package.json')) as { scripts: Record<string, string> };
    const { preversion, version, release } = scripts;
    write(
      'package.json',
      JSON.stringify({
        name: 'x',
        version: '0.1.0',
        private: true,
        scripts: { preversion, version, release },
      }),
    );
    cpSync(path.join(root, '.npmrc'), path.join(folder, '.npmrc'));
    cpSync(path.join(root, 'infra/build/changelog.mjs'), path.join(folder, 'infra/build/changelog.mjs'));
    write('docs/CHANGELOG.md', changelog);
    write('docs/construct.md', 'npm install ./relay-0.1.0.tgz\nunzip relay-0.1.0-assets.zip\n');
    write('.github/CONTRIBUTING.md', 'gh attestation verify relay-0.1.0.tgz\n');
    write('examples/a/package.json', '{"dependencies":{"relay":"file:relay-0.1.0.tgz","other":"0.1.0"}}');
    write('examples/b/main.tf', 'variable "release" { default = "0.1.0" }\n');
    write(
      'infra/bootstrap/bootstrap.mjs',
      `import fs from 'node:fs';\nfs.writeFileSync('test/compatibility/names.json', process.argv[2]);\n`,
    );
    write('test/compatibility/names.json', 'nothing');
    write('.ci/run', '#!/bin/sh\necho tested\n');
    chmodSync(path.join(folder, '.ci/run'), 0o755);
    const begun = await run('git init -q -b main && git add -A && git commit -q -m first');
    if (begun.exitCode !== 0) throw new Error(begun.output);
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  it('is tested, then a commit and a tag of its version, with the date in the changelog', async () => {
    const { exitCode, output } = await run('npm run release -- minor');
    expect(output).toContain('tested');
    expect(exitCode).toBe(0);
    expect((await run('git tag && git status --porcelain -uno')).output.trim()).toBe('v0.2.0');
    const date = new Date().toISOString().slice(0, 10);
    expect(read('docs/CHANGELOG.md')).toBe(
      changelog.replace('## Unreleased\n', `## Unreleased\n\n## 0.2.0 - ${date}\n`),
    );
    expect(read('docs/construct.md')).toBe('npm install ./relay-0.2.0.tgz\nunzip relay-0.2.0-assets.zip\n');
    expect(read('.github/CONTRIBUTING.md')).toContain('relay-0.2.0.tgz');
    expect(read('examples/a/package.json')).toContain('"file:relay-0.2.0.tgz","other":"0.1.0"');
    expect(read('examples/b/main.tf')).toContain('default = "0.2.0"');
    expect(read('test/compatibility/names.json')).toBe('test/compatibility/public-names.ts');
    const notes = await run('node infra/build/changelog.mjs notes v0.2.0');
    expect(notes).toEqual({ exitCode: 0, output: '- A thing.\n' });
  });

  it.each([
    ['without changelog lines', 'release -- minor', 'nothing is unreleased'],
    ['a second time', 'release -- 0.2.0', '0.2.0 is released already'],
    [
      'as a patch that adds',
      'release -- patch',
      'a patch may contain only fixes',
      '### Added\n\n- A thing.\n',
    ],
    [
      'that omits changelog lines',
      'release -- 0.1.0',
      'move the unreleased lines into "## 0.1.0',
      '- A thing.\n',
    ],
  ])('%s is refused without creating a tag', async (_what, command, reason, unreleased = '') => {
    const text = read('docs/CHANGELOG.md').replace('## Unreleased\n', `## Unreleased\n\n${unreleased}`);
    write('docs/CHANGELOG.md', text);
    await run('git commit -q -a -m lines');
    const { exitCode, output } = await run(`npm run ${command}`);
    expect(output).toContain(reason);
    expect(exitCode).not.toBe(0);
    expect((await run('git tag')).output.trim()).toBe('v0.2.0');
    await run('git checkout -q . && git reset -q --hard v0.2.0');
  });

  it('dates a changelog section that was prepared', async () => {
    await run('git reset -q --hard main~1');
    const prepared = changelog.replace('- A thing.\n\n', '');
    write('docs/CHANGELOG.md', prepared);
    const { exitCode } = await run('git commit -q -a -m prepared && npm run release -- 0.1.0');
    expect(exitCode).toBe(0);
    const date = new Date().toISOString().slice(0, 10);
    expect(read('docs/CHANGELOG.md')).toBe(prepared.replace('2026-01-02', date));
    expect((await run('git tag --points-at HEAD')).output.trim()).toBe('v0.1.0');
    await run('git reset -q --hard v0.2.0');
  });

  it('has notes whose links also work on the page of the release', async () => {
    write(
      'docs/CHANGELOG.md',
      '## 0.2.0 - 2026-01-02\n\n- [a](scale.md#b), [c](../LICENSE), [d](https://e.f/g), [h](#i)\n',
    );
    const variables = 'GITHUB_SERVER_URL=https://github.com GITHUB_REPOSITORY=acme/relay';
    const { output } = await run(`${variables} node infra/build/changelog.mjs notes v0.2.0`);
    const tree = 'https://github.com/acme/relay/blob/v0.2.0';
    expect(output).toBe(
      `- [a](${tree}/docs/scale.md#b), [c](${tree}/LICENSE), [d](https://e.f/g), [h](${tree}/docs/CHANGELOG.md#i)\n`,
    );
    await run('git checkout -q .');
  });

  it('has no notes if its tag is not that of the version, or the version has no date', async () => {
    expect((await run('node infra/build/changelog.mjs notes v0.9.0')).exitCode).not.toBe(0);
    write('docs/CHANGELOG.md', '# Changelog\n\n## Unreleased\n\n- A thing.\n');
    expect((await run('node infra/build/changelog.mjs notes v0.2.0')).output).toContain('has no heading');
  });
});
