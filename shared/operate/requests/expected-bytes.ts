/** Says about how much a search of the log will read: of what each group holds, the share of its time. Reads nothing. */
import type { LogSource } from '../call-log.ts';

/** Undefined: it is not known. */
export function expectedBytes(
  { kept }: LogSource,
  { fromMs, toMs }: { fromMs: number; toMs: number },
  nowMs: number,
): number | undefined {
  if (!kept || kept.every(({ bytes }) => bytes === 0)) return undefined;
  const shares = kept.map(({ bytes, sinceMs }) => {
    const spanMs = Math.max(1, nowMs - sinceMs);
    const askedMs = Math.min(toMs, nowMs) - Math.max(fromMs, sinceMs);
    return bytes * Math.min(1, Math.max(0, askedMs / spanMs));
  });
  return Math.ceil(shares.reduce((sum, share) => sum + share, 0));
}
