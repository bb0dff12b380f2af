/**
 * `npm run bench`: the relay next to the floor handler and a bare pipe, in paired rounds in random order. Writes Markdown
 * and a chart. Compare ratios within one run, never times of two runs.
 *
 *     npm run bench -- --rounds 12 --out docs/images        # some minutes, on a machine that does nothing else
 *     npm run bench -- --rounds 2 --force                   # on a machine that does
 *     npm run bench -- --shapes                             # what the worst requests cost a server instead, some 6 minutes
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { measure, type Figures } from './measures.ts';
import { coresInUse, waitForQuiet } from './quiet.ts';
import { chart, markdown, type Name, type Round } from './report.ts';
import { startStand, type Target } from './stand.ts';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '12' },
    'max-load': { type: 'string', default: '0.3' },
    out: { type: 'string', default: '.relay/bench' },
    force: { type: 'boolean', default: false },
    shapes: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
});

function shuffled<Value>(values: readonly Value[]): Value[] {
  const drawn = values.map((value) => [Math.random(), value] as const);
  return drawn.toSorted(([a], [b]) => a - b).map(([, value]) => value);
}

async function round(targets: Target[]): Promise<Round> {
  const measured: [Name, Figures][] = [];
  for (const target of shuffled(targets)) measured.push([target.name, await measure(target)]);
  return Object.fromEntries(measured) as Round;
}

if (options.shapes) {
  await (await import('../shapes/main.ts')).measureShapes(options);
  process.exit();
}
const stand = await startStand();
try {
  // Warms up the compiler and the caches.
  await round(stand.targets);
  const rounds: Round[] = [];
  const others: number[] = [];
  while (rounds.length < Number(options.rounds)) {
    others.push(options.force ? await coresInUse() : await waitForQuiet(Number(options['max-load'])));
    rounds.push(await round(stand.targets));
    console.error(
      `round ${rounds.length} of ${options.rounds}: others used ${others.at(-1)?.toFixed(2)} cores`,
    );
  }
  const machine = `${availableParallelism()} x ${cpus()[0]?.model.trim() || process.arch}, Node ${process.version}`;
  const conditions = { machine, date: new Date().toISOString().slice(0, 10), others };
  mkdirSync(options.out, { recursive: true });
  writeFileSync(join(options.out, 'bench.md'), markdown(rounds, conditions));
  writeFileSync(join(options.out, 'bench.svg'), chart(rounds, conditions));
  console.log(markdown(rounds, conditions));
  console.log(`written: ${options.out}/bench.md, ${options.out}/bench.svg`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await stand.stop();
}
