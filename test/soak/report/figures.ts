/** Computes a soak's figures for its plots, by second. */
import type { CallSeen } from '../checker/observations.ts';
import { storeFaults } from '../plan/fault-kinds.ts';
import type { SoakResult } from '../soak.ts';
import type { Plot } from './plot.ts';

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

type Point = readonly [number, number];

function bySecond(
  calls: readonly CallSeen[],
  startedMs: number,
  value: (calls: CallSeen[]) => number,
): Point[] {
  const seconds = new Map<number, CallSeen[]>();
  for (const call of calls) {
    const second = Math.floor((call.endedMs - startedMs) / 1000);
    seconds.set(second, [...(seconds.get(second) ?? []), call]);
  }
  return [...seconds].toSorted(([a], [b]) => a - b).map(([second, group]) => [second, value(group)]);
}

const millisecondsToFirst = ({ startedMs, firstContentMs = startedMs }: CallSeen): number =>
  firstContentMs - startedMs;
const millisecondsToEnd = ({ startedMs, endedMs }: CallSeen): number => endedMs - startedMs;
export const isOrdinary = ({ fault, end }: CallSeen): boolean => fault === 'none' && end === 'whole';

export function plotsOf({ seen, startedMs, endedMs, memory }: SoakResult): Record<string, Plot> {
  const seconds = (endedMs - startedMs) / 1000;
  const ordinary = seen.calls.filter(isOrdinary);
  const at = (milliseconds: number): number => (milliseconds - startedMs) / 1000;
  const bands = seen.disturbances
    .filter(({ kind }) => storeFaults.has(kind))
    .map(({ fromMs, untilMs }) => [at(fromMs), at(untilMs)] as const);
  const latency = (pick: (call: CallSeen) => number, share: number): Point[] =>
    bySecond(ordinary, startedMs, (calls) => quantile(calls.map(pick), share));
  const counted = (isCounted: (call: CallSeen) => boolean): Point[] =>
    bySecond(seen.calls, startedMs, (calls) => calls.filter(isCounted).length);
  const sizes = (pick: (sample: SoakResult['memory'][number]) => number): Point[] =>
    memory.map((sample) => [at(sample.atMs), pick(sample)]);
  return {
    latency: {
      title: 'Ordinary calls, by second',
      unit: 'ms',
      seconds,
      bands,
      bandsName: 'fault of the store',
      series: [
        { name: 'whole answer, median', colour: '#1f6f8b', points: latency(millisecondsToEnd, 0.5) },
        { name: 'first bytes, worst', colour: '#c2703d', points: latency(millisecondsToFirst, 1) },
        { name: 'first bytes, median', colour: '#3d8b40', points: latency(millisecondsToFirst, 0.5) },
      ],
    },
    calls: {
      title: 'Calls that ended, by second',
      unit: 'calls',
      seconds,
      bands,
      bandsName: 'fault of the store',
      series: [
        { name: 'all', colour: '#1f6f8b', points: counted(() => true) },
        { name: 'not whole', colour: '#b03030', points: counted(({ end }) => end !== 'whole') },
      ],
    },
    memory: {
      title: 'Memory',
      unit: 'MB',
      seconds,
      series: [
        { name: 'functions together', colour: '#1f6f8b', points: sizes(({ functions }) => functions) },
        { name: 'largest function', colour: '#c2703d', points: sizes(({ largest }) => largest) },
        { name: 'their host', colour: '#3d8b40', points: sizes(({ runner }) => runner) },
        { name: 'emulated tables', colour: '#7a4fa0', points: sizes(({ emulator }) => emulator) },
      ],
    },
  };
}
