/**
 * Prints what a streaming function costs at its start and fails above the limits: bytes that are loaded before the
 * first request, and the time from an empty process to a loaded handler, as a ratio to an empty handler.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';
import { metaFile } from '../../infra/build.ts';
import { Environment } from '../../infra/local/lambda/environment.ts';
import { functionDescriptions, functionNames } from '../../infra/stack/function-descriptions.ts';

export const firstLoadBytesMax = 300_000;
const startRatioMax = 1.6;
const repetitions = 21;

const outputFolder = join(import.meta.dirname, '..', '..', 'dist');

/** The bundle's entry and all that it imports statically: what is read before the first request. */
export function firstLoadBytes(metafile: Metafile): { first: number; later: number } {
  const total = Object.values(metafile.outputs).reduce((sum, output) => sum + output.bytes, 0);
  const seen = new Set<string>();
  const waiting = ['index.mjs'];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const output = metafile.outputs[file];
    if (output === undefined || seen.has(file)) continue;
    seen.add(file);
    const needed = output.imports.filter((item) => !item.external && item.kind === 'import-statement');
    waiting.push(...needed.map((item) => item.path));
  }
  const first = [...seen].reduce((sum, file) => sum + (metafile.outputs[file]?.bytes ?? 0), 0);
  return { first, later: total - first };
}

const functionEnvironment = { RELAY_STACK: 'relay', RELAY_VERSION: 'size', ORIGIN_SECRETS: 'size' };

/** From nothing to the first call for work, under AWS's own runtime client: what Lambda calls the init phase. */
async function startMilliseconds(folder: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const output: string[] = [];
  const started = performance.now();
  const environment = new Environment(
    {
      name: 'size',
      arn: 'arn:aws:lambda:us-east-1:000000000000:function:size',
      folder,
      handler: 'index.handler',
      environment: functionEnvironment,
      timeoutMs: 30_000,
      memoryMegabytes: 256,
      environmentsMax: 1,
    },
    1,
    {
      idle: () => resolve(performance.now() - started),
      dead: (_, error) =>
        reject(new Error(`${folder} does not load: ${error?.errorMessage}\n${output.join('\n')}`)),
    },
    (line) => output.push(line),
  );
  try {
    return await promise;
  } finally {
    await environment.kill();
  }
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Starts all bundles in turn, again and again, so that whatever else the machine does falls on all alike. */
async function medianStarts(folders: string[]): Promise<number[]> {
  const times = folders.map((): number[] => []);
  for (let repetition = 0; repetition < repetitions; repetition += 1) {
    for (const [index, folder] of folders.entries()) times[index]?.push(await startMilliseconds(folder));
  }
  return times.map(median);
}

const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} KB`;

/** Prints one function's figures; false when one is above its limit. */
function report(name: string, startMs: number, emptyMs: number): boolean {
  const metafile = JSON.parse(readFileSync(metaFile(outputFolder, name), 'utf8')) as Metafile;
  const { first, later } = firstLoadBytes(metafile);
  const ratio = startMs / emptyMs;
  const times = `${startMs.toFixed(0)} ms, empty handler ${emptyMs.toFixed(0)} ms`;
  console.log(
    `${name}: loaded at start ${kilobytes(first)} (limit ${kilobytes(firstLoadBytesMax)}), later ${kilobytes(later)}`,
  );
  console.log(`${name}: start ${times}, ratio ${ratio.toFixed(2)} (limit ${startRatioMax})`);
  return first <= firstLoadBytesMax && ratio <= startRatioMax;
}

async function main(): Promise<boolean> {
  const names = functionNames.filter((name) => functionDescriptions[name].url === 'RESPONSE_STREAM');
  const emptyFolder = mkdtempSync(join(tmpdir(), 'relay-size-'));
  try {
    writeFileSync(join(emptyFolder, 'index.mjs'), 'export const handler = async () => {};\n');
    const [emptyMs = Number.NaN, ...startsMs] = await medianStarts([
      emptyFolder,
      ...names.map((name) => join(outputFolder, name)),
    ]);
    return names.map((name, index) => report(name, startsMs[index] ?? Number.NaN, emptyMs)).every(Boolean);
  } finally {
    rmSync(emptyFolder, { recursive: true });
  }
}

if (import.meta.main && !(await main())) {
  console.error('above the limit: look at dist/meta for what grew, and load rare code with import()');
  process.exitCode = 1;
}
