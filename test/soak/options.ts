/** The options of `npm run soak`. */
import { parseArgs } from 'node:util';
import { allFaults, faultKinds, type FaultKind } from './plan/fault-kinds.ts';
import { quotaFor } from './plan/fault-plan.ts';
import { isLie, lies, type Lie } from './stack/lies.ts';

export interface SoakOptions {
  minutes: number;
  seed: number;
  workers: number;
  faults: FaultKind[];
  /** Folder of the report. */
  report: string;
  lie: Lie | undefined;
}

export type Command =
  | { run: 'soak'; options: SoakOptions }
  | { run: 'crash' }
  | { run: 'help' }
  | { run: 'wrong'; message: string };

const minutesMost = 24 * 60;
const workersMost = 12;
const seedMost = 2 ** 32;

const listed = (entries: Record<string, string>): string =>
  Object.entries(entries)
    .map(([name, what]) => `    ${name.padEnd(26)}${what}`)
    .join('\n');

export const help = `npm run soak -- [options]

Runs the stack of \`npm start\` under load and breaks what can be broken: processes, upstreams, the store, the
configuration, clients. Then it checks by its own arithmetic, not the product's, that nothing was lost, doubled or
answered wrong, and writes a report (Markdown with plots).

    --minutes N       length of the load, 0.2 to ${minutesMost} (default 10); the stack then gets up to 4 minutes to settle
    --seed N          the order of the faults (default: by chance; it is printed and in the report)
    --workers N       ordinary calls at once, 1 to ${workersMost} (default 5)
    --faults A,B      these kinds alone (default: all)
    --report FOLDER   where the report goes (default soak-report)
    --scenario crash  instead: one kill -9 in mid-stream, step by step, in half a minute (npm run demo:crash)
    --lie NAME        a layer around the relay that lies, to see that the checker notices

Exit code: 0 nothing found · 1 something was lost, doubled or answered wrong, or a kind of fault was injected too
rarely · 2 an option is wrong, or the stack did not start · 130 ended by Ctrl-C (the report is written all the same).
Each kind has to be injected ${quotaFor(10)} times in 10 minutes and more, in shorter runs in proportion, at least once.

Faults:
${listed(faultKinds)}

Lies:
${listed(lies)}
`;

const names = {
  minutes: { type: 'string' },
  seed: { type: 'string' },
  workers: { type: 'string' },
  faults: { type: 'string' },
  report: { type: 'string' },
  scenario: { type: 'string' },
  lie: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

export function readCommand(parameters: string[], chanceSeed: number): Command {
  try {
    const { values } = parseArgs({ args: parameters, options: names });
    if (values.help) return { run: 'help' };
    if (values.scenario !== undefined) {
      const others = Object.keys(values).filter((name) => name !== 'scenario');
      if (values.scenario !== 'crash') throw new Error(`--scenario is ${values.scenario}; wanted: crash`);
      if (others.length > 0) throw new Error(`--scenario takes no --${others.join(', no --')}`);
      return { run: 'crash' };
    }
    const { lie, report = 'soak-report' } = values;
    if (lie !== undefined && !isLie(lie))
      throw new Error(`--lie is ${lie}; wanted one of ${Object.keys(lies).join(', ')}`);
    if (report === '') throw new Error('--report is empty; wanted: a folder');
    return {
      run: 'soak',
      options: {
        minutes: numberOf('minutes', values.minutes ?? '10', { least: 0.2, most: minutesMost }),
        seed: numberOf('seed', values.seed ?? String(chanceSeed), { least: 0, most: seedMost, whole: true }),
        workers: numberOf('workers', values.workers ?? '5', { least: 1, most: workersMost, whole: true }),
        faults: faultsOf(values.faults),
        report,
        lie,
      },
    };
  } catch (error) {
    return { run: 'wrong', message: (error as Error).message };
  }
}

function numberOf(
  name: string,
  text: string,
  { least, most, whole = false }: { least: number; most: number; whole?: boolean },
): number {
  const value = Number(text);
  const isNumber = text.trim() !== '' && (whole ? Number.isInteger(value) : Number.isFinite(value));
  if (isNumber && value >= least && value <= most) return value;
  throw new Error(`--${name} is ${text}; wanted: a ${whole ? 'whole ' : ''}number from ${least} to ${most}`);
}

function faultsOf(text: string | undefined): FaultKind[] {
  if (text === undefined || text === 'all') return allFaults;
  const asked = text.split(',').map((name) => name.trim());
  const unknown = asked.filter((name) => !(name in faultKinds));
  if (unknown.length > 0)
    throw new Error(`--faults has ${unknown.join(', ')}; wanted some of ${allFaults.join(', ')}`);
  return allFaults.filter((kind) => asked.includes(kind));
}
