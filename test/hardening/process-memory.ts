import { readFileSync, writeFileSync } from 'node:fs';

/** Linux alone tells how much memory a process has had at most; elsewhere nothing is measured. */
const isKnown = process.platform === 'linux';

/** Megabytes that the process had in memory at most since its start, or since `forgetPeak`; 0 where nobody knows. */
export function peakMegabytes(pid: number): number {
  const status = isKnown ? readFileSync(`/proc/${pid}/status`, 'utf8') : '';
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
}

export function forgetPeak(pid: number): void {
  if (isKnown) writeFileSync(`/proc/${pid}/clear_refs`, '5');
}
