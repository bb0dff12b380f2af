import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { testsWithBuiltPages } from './infra/pages/built-pages.ts';
import { mutate } from './test/mutants/mutate.ts';

/** What takes half a minute and more of both processors, or of waiting: `npm run test:long`. */
export const longTests = [
  'test/long/**/*.test.ts',
  'test/console/looks.test.ts',
  'test/extending/*.test.ts',
  'test/hardening/stalled-readers.test.ts',
  'test/hardening/worst-tenant.test.ts',
  'test/infra/package.test.ts',
  'test/ops/bin.test.ts',
  'test/rollout/rollout.test.ts',
];

/** They put another module in the place of the registry, which other files of the same worker would get too. */
const replaceModules = [
  'test/unit/relay/dispatch/repeats.test.ts',
  'test/unit/relay/state/{alias,kept,sealed}-state.test.ts',
];

/**
 * Files that share a stack. The file with the folder's name runs them together, unless the command names one. In `local`, that is
 * `accounts.test.ts`, and `client.test.ts` runs `pages.test.ts`.
 */
const onOneStack = process.argv
  .slice(2)
  .some((argument) => /(client|hardening|local|vendors)\/\w/.test(argument))
  ? []
  : [
      'test/client/!(client).test.ts',
      'test/hardening/!(hardening).test.ts',
      'test/local/{entry,limits,money,pages,prepaid,threads}.test.ts',
      'test/vendors/!(vendors).test.ts',
    ];

/** Files that wait for processes of the stack. Three others begin after each: together they left a third of the processors idle. */
const waits =
  /test\/(client\/|contract\/store-faults|docs\/|hardening\/|local\/|ops\/restore|server\/running|stored\/|vendors\/)/;
/** Short files that take long. By its size, which is all that Vitest knows of a file at first, each would begin last, and be waited for. */
const takesLong = /test\/(infra\/cloudformation|simulation\/)/;

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    shareSyntheses();
    // oxlint-disable-next-line unicorn/no-array-sort -- It is no array's.
    const sorted = await super.sort(files);
    const { waiting = [], long = [], short = [], isolated = [] } = Object.groupBy(sorted, kindOf);
    const computing = [...long, ...short];
    const inTurn = waiting.flatMap((file) => [[file], computing.splice(0, 3)].flat());
    return [...inTurn, ...computing, ...isolated];
  }
}

function kindOf({ moduleId, project }: TestSpecification): 'waiting' | 'long' | 'short' | 'isolated' {
  // A free worker ends if the next file is isolated, and loses the modules that it loaded.
  if (project.config.isolate) return 'isolated';
  if (waits.test(moduleId)) return 'waiting';
  return takesLong.test(moduleId) ? 'long' : 'short';
}

/** Test files in all workers use the same stacks, and synthesizing one takes half a second. Each run uses its own folder. */
function shareSyntheses(): void {
  const folder = mkdtempSync(path.join(tmpdir(), 'relay-syntheses-'));
  process.env['RELAY_SYNTHESES'] = folder;
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
}

const mutant = process.env['RELAY_MUTANT'];
export const plugins = [testsWithBuiltPages, ...(mutant === undefined ? [] : [mutate(mutant)])];
/** Examples import the package by its name, as their readers do. */
const resolve = {
  alias: [
    { find: 'relay/edge', replacement: path.join(import.meta.dirname, 'infra/stack/edge/relay-edge.ts') },
    { find: 'relay', replacement: path.join(import.meta.dirname, 'infra/stack/relay.ts') },
  ].map(({ find, replacement }) => ({ find: new RegExp(`^${find}$`), replacement })),
};
const limits = { testTimeout: 30_000, hookTimeout: 60_000 };

export default defineConfig({
  test: {
    // Many tests wait for processes of the stack, so other workers have the processors meanwhile.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        plugins,
        resolve,
        test: {
          ...limits,
          name: 'own',
          include: replaceModules,
        },
      },
      // All others share their workers: loading the modules anew for each file took as long as the tests.
      {
        plugins,
        resolve,
        test: {
          ...limits,
          name: 'shared',
          execArgv: [
            // Otherwise V8 counts WebAssembly memory as its own, and collects all garbage ten times while it loads a rules engine.
            '--external-memory-accounted-in-global-limit',
            // Optimizing the WebAssembly of a rules engine costs a second, which is more than it saves. Default: 13 million.
            '--wasm-tiering-budget=300000000',
          ],
          include: ['test/**/*.test.ts'],
          exclude: [...longTests, ...replaceModules, ...onOneStack],
          isolate: false,
        },
      },
    ],
  },
});
