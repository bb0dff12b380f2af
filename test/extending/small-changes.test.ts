import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { CopiedTree } from './copied-tree.ts';

/** Adds an option of a stage, an alarm, a command, a page of the console and a dialect: each diff is the complete change. */
it.each([
  {
    fixture: 'trial-option.patch',
    files: [
      'infra/stack/constructs/distribution.ts',
      'infra/stack/options/option-table.ts',
      'infra/stack/relay.ts',
      'relay.schema.json',
    ],
    tests: ['test/infra/price-class.test.ts', 'test/infra/options.test.ts', 'test/docs/options.test.ts'],
    passes: 'price-class.test.ts CloudFront answers from the places of priceClass alone',
  },
  {
    fixture: 'trial-alarm.patch',
    files: ['infra/stack/observe/alarms.ts'],
    tests: ['test/infra/alarm-states.test.ts', 'test/infra/alarms.test.ts', 'test/infra/dashboard.test.ts'],
    passes: 'alarm-states.test.ts the alarm on attempts that fail triggers with 1000: true',
  },
  {
    fixture: 'trial-command.patch',
    files: ['infra/ops/cli/commands/whoami.ts', 'infra/ops/cli/program.ts'],
    tests: ['test/ops/whoami.test.ts', 'test/ops/help.test.ts'],
    passes: 'whoami.test.ts whoami says who writes rows, in text and as JSON',
  },
  {
    fixture: 'trial-console-page.patch',
    files: [
      'infra/ops/console/layout/frame.ts',
      'infra/ops/console/pages/all-pages.ts',
      'infra/ops/console/pages/plans.ts',
    ],
    tests: ['test/console/plans.test.ts'],
    passes:
      'plans.test.ts lists plans on a page of their own, a section of its own, with what is wrong and no text of such a row',
  },
  {
    fixture: 'trial-dialect.patch',
    files: [
      'shared/upstreams/dialects/dialects.ts',
      'shared/upstreams/dialects/trial/events.ts',
      'shared/upstreams/dialects/trial/request.ts',
    ],
    tests: [
      'test/golden/upstream.test.ts',
      'test/tidy.test.ts',
      'test/unit/upstreams',
      'test/unit/config/tables-doc.test.ts',
    ],
    passes: 'trial-dialect.test.ts serves a chat client, billed by its counts (stream: true)',
  },
])(
  '$fixture touches four files of the product at most, and works',
  async ({ fixture, files, tests, passes }) => {
    const diff = readFileSync(path.join(import.meta.dirname, 'fixtures', fixture), 'utf8');
    const changed = [...diff.matchAll(/^\+\+\+ b\/(.+)$/gm)].map(([, file]) => file ?? '');
    expect(changed.filter((file) => !/^(docs|test)\//.test(file))).toEqual(files);
    const tree = new CopiedTree();
    try {
      await tree.apply(fixture);
      await tree.tool('tsc', '--noEmit');
      const { failed, passed } = await tree.tests(...tests);
      expect(failed).toEqual([]);
      expect(passed).toContain(passes);
    } finally {
      tree.remove();
    }
  },
  240_000,
);
