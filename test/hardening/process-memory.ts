import { readFileSync, writeFileSync } from 'node:fs';

/** Only Linux reports a process's peak memory; elsewhere nothing is measured. */
const isKnown = process.platform === 'linux';

/** Peak memory of the process in megabytes since its start or `forgetPeak`; 0 if unknown. */
export function peakMegabytes(pid: number): number {
  const status = isKnown ? readFileSync(`/proc/${pid}/status`, 'utf8') : '';
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
}

export function forgetPeak(pid: number): void {
  if (isKnown) writeFileSync(`/proc/${pid}/clear_refs`, '5');
}
