/**
 * Measures the cost of a start: from an empty process to the first call for work, under AWS's own runtime client. Lambda calls
 * this the init phase; on both sides of a ratio it is the same Node, the same client and the same way to load.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LambdaEnvironment } from '../../infra/local/lambda/environment.ts';

export interface StartCost {
  /** Processor time of all threads. Half as noisy as the clock on a busy machine. */
  processorMs: number;
  clockMs: number;
}

const functionEnvironment = {
  RELAY_STACK: 'relay',
  RELAY_VERSION: 'size',
  ORIGIN_SECRETS: 'size',
  SEAL_KEYS: '{"1":"size"}',
};

/** Starts the bundle in `folder` once. Throws an Error with its output if it does not load. */
async function measureStart(folder: string): Promise<StartCost> {
  const { promise, resolve, reject } = Promise.withResolvers<StartCost>();
  const output: string[] = [];
  const started = performance.now();
  const environment = new LambdaEnvironment({
    settings: {
      name: 'size',
      arn: 'arn:aws:lambda:us-east-1:000000000000:function:size',
      folder,
      // Boot and import: what a function prepares before its first call, it would do in that call otherwise.
      handler: existsSync(join(folder, 'main.mjs')) ? 'main.handler' : 'index.handler',
      environment: functionEnvironment,
      timeoutMs: 30_000,
      memoryMegabytes: 256,
      environmentsMax: 1,
    },
    serial: 1,
    events: {
      idle: () => {
        const clockMs = performance.now() - started;
        resolve({ clockMs, processorMs: processorMilliseconds(processIn(output)) });
      },
      dead: (_, error) =>
        reject(new Error(`${folder} does not load: ${error?.message}\n${output.join('\n')}`)),
    },
    log: (line) => output.push(line),
  });
  try {
    return await promise;
  } finally {
    await environment.kill();
  }
}

const processIn = (output: string[]): string => /pid (\d+)/.exec(output.join('\n'))?.[1] ?? '';

/** Linux counts it for each thread in nanoseconds. NaN if that is not available. */
export function processorMilliseconds(processId: string): number {
  const threads = `/proc/${processId}/task`;
  if (!existsSync(threads)) return Number.NaN;
  const nanoseconds = readdirSync(threads).map((thread) => {
    try {
      return Number(readFileSync(`${threads}/${thread}/schedstat`, 'utf8').split(' ')[0]);
    } catch {
      return 0; // It has just exited.
    }
  });
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6;
}

/**
 * Starts all bundles in turn, repeatedly, so that other load affects all of them equally. For each
 * folder its costs, in the order of the rounds.
 */
export async function measureStarts(folders: string[], rounds: number): Promise<StartCost[][]> {
  const costs = folders.map((): StartCost[] => []);
  // The first round reads files into memory.
  for (let round = -1; round < rounds; round += 1) {
    for (const [index, folder] of folders.entries()) {
      const cost = await measureStart(folder);
      if (round >= 0) costs[index]?.push(cost);
    }
  }
  return costs;
}

/** The value below which `share` (0 to 1) of the values lie. */
export function quantile(values: number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? Number.NaN;
}
