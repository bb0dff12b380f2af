/** Checks whether other programs use this machine, because their load affects the targets unevenly. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const ticksPerSecond = 100;
const waitMsMax = 60_000;

/** Busy time of all processors, stolen time included, in ticks. */
function busyTicks(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return user + nice + system + irq + softirq + steal;
}

/** Cores in use while the targets are idle. */
export async function coresInUse(): Promise<number> {
  const before = busyTicks();
  const startedMs = performance.now();
  await sleep(1_000);
  return (busyTicks() - before) / ticksPerSecond / ((performance.now() - startedMs) / 1000);
}

/** Waits until other programs use less than `most` cores. Throws an Error if they do not within a minute. */
export async function waitForQuiet(most: number): Promise<number> {
  const untilMs = performance.now() + waitMsMax;
  for (;;) {
    const cores = await coresInUse();
    if (cores <= most) return cores;
    if (performance.now() > untilMs)
      throw new Error(
        `Other programs use ${cores.toFixed(2)} cores; at most ${most} are accepted. --force measures all the same.`,
      );
  }
}
