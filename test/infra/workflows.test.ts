/** Rules for every workflow: least permissions, pinned actions, no untrusted text in shell lines, only existing commands. */
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readPage, root } from '../docs/pages.ts';
import { workflowOf, type Job } from './workflows.ts';

const names = readdirSync(path.join(root, '.github/workflows')).map((file) => path.basename(file, '.yml'));
const { scripts } = JSON.parse(readPage('package.json')) as { scripts: Record<string, string> };

/** Jobs with write permissions; a new one needs a decision. */
const writers: Record<string, Record<string, string>> = {
  'release release': { contents: 'write', 'id-token': 'write', attestations: 'write' },
  'release images': { packages: 'write', 'id-token': 'write', attestations: 'write' },
  'nightly-aws steps': { 'id-token': 'write' },
};

const runsOf = ({ steps }: Job): string[] => steps.flatMap(({ run = [] }) => run);

describe.each(names)('the workflow %s', (name) => {
  const { name: title, on, permissions, jobs } = workflowOf(name);
  const text = readPage(`.github/workflows/${name}.yml`);

  it('is named, and has no event that runs foreign code with the permissions of this repository', () => {
    expect(title).toBe(name);
    const events = typeof on === 'string' ? [on] : Object.keys(on);
    const known = new Set(['push', 'pull_request', 'schedule', 'workflow_dispatch']);
    expect(events.filter((event) => !known.has(event))).toEqual([]);
  });

  it('can only read by default, can write only in listed jobs, and uses no stored secret', () => {
    expect([{}, { contents: 'read' }]).toContainEqual(permissions);
    for (const [id, job] of Object.entries(jobs)) {
      const written = Object.entries(job.permissions ?? {}).filter(([, level]) => level !== 'read');
      expect(Object.fromEntries(written)).toEqual(writers[`${name} ${id}`] ?? {});
    }
    expect(text).not.toMatch(/\bsecrets\b[.[]/);
  });

  it('pins actions by commit with their version in a comment, and leaves no credentials in the clone', () => {
    for (const { steps } of Object.values(jobs))
      for (const { uses, with: inputs } of steps)
        if (uses?.startsWith('actions/checkout@'))
          expect(inputs).toMatchObject({ 'persist-credentials': false });
    const used = text.match(/uses: .*/g) ?? [];
    expect(used.filter((line) => !/^uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([]);
  });

  it('stops if the tag differs from the version, before it builds anything to publish', () => {
    if (!/^ +tags:/m.test(text)) return;
    const first = Object.values(jobs).filter(({ needs }) => needs === undefined);
    for (const job of first)
      expect(runsOf(job)[0]).toContain('infra/build/changelog.mjs notes "$GITHUB_REF_NAME"');
  });

  it('restores no cache outside ci, because another run may have filled it', () => {
    if (name === 'ci') return;
    const steps = Object.values(jobs).flatMap((job) => job.steps);
    for (const { uses, with: inputs } of steps)
      if (uses?.startsWith('actions/setup-node@')) {
        expect(inputs).toMatchObject({ 'package-manager-cache': false });
        expect(inputs).not.toHaveProperty('cache');
      }
  });

  it('has a time limit', () => {
    const endless = Object.values(jobs).filter((job) => !((job['timeout-minutes'] ?? 0) > 0));
    expect(endless).toEqual([]);
  });

  it('inserts only matrix values and job results into shell lines', () => {
    const expressions = Object.values(jobs)
      .flatMap(runsOf)
      .flatMap((run) => [...run.matchAll(/\$\{\{ *(.*?) *\}\}/g)].map(([, expression]) => expression));
    // The shell would execute a title or a branch name as code.
    expect(expressions.filter((one = '') => !/^(matrix\.\w+|needs\.\w+\.result)$/.test(one))).toEqual([]);
  });

  it('runs only scripts and files that exist', () => {
    const runs = Object.values(jobs).flatMap(runsOf).join('\n');
    const called = [...runs.matchAll(/\bnpm (?:run )?([\w:-]+)/g)].map(([, script = '']) => script);
    expect(called.filter((script) => !(script in scripts))).toEqual([]);
    const files = runs.match(/(?<![\w./-])(?:infra|test|\.ci|\.github)\/[\w./-]+\w/g) ?? [];
    expect(files.filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
  });
});

it('a job with write permissions runs no code of packages, except the one that may only assume a role in AWS', () => {
  for (const writer of Object.keys(writers)) {
    const [name = '', id = ''] = writer.split(' ');
    const job = workflowOf(name).jobs[id];
    expect(job).toBeDefined();
    if (writer !== 'nightly-aws steps') expect(runsOf(job as Job).join()).not.toMatch(/\bnp[mx]\b|\bnode\b/);
  }
});
