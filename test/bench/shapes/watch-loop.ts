/**
 * Loaded into the server before it starts: tells its parent the longest time between two turns of the event loop since it was last
 * asked, by the clock and by the processor that the thread used. Other programs lengthen the first alone.
 */
import { isMainThread } from 'node:worker_threads';

export interface Hold {
  clockMs: number;
  processorMs: number;
}

const everyMs = 1;

function watch(): void {
  const none: Hold = { clockMs: 0, processorMs: 0 };
  const now = (): Hold => {
    const { user, system } = process.threadCpuUsage();
    return { clockMs: performance.now(), processorMs: (user + system) / 1000 };
  };
  let longest = none;
  let before = now();
  setInterval(() => {
    const at = now();
    longest = {
      clockMs: Math.max(longest.clockMs, at.clockMs - before.clockMs - everyMs),
      processorMs: Math.max(longest.processorMs, at.processorMs - before.processorMs),
    };
    before = at;
  }, everyMs).unref();
  process.on('message', (asked) => {
    if (asked !== 'hold') return;
    process.send?.({ hold: longest });
    longest = none;
  });
  // A listener keeps the channel, and with it the process, alive.
  process.channel?.unref();
}

if (isMainThread) watch();
