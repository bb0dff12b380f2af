import { countsLine } from './embedded-metric.ts';

/** What the compiler counts; each of `BadRows` and `ConfigCompileFailed` has an alarm. */
export interface ConfigMetrics {
  compiled(counts: { badRows: number; warnedRows: number; unpricedModels: number }): void;
  /** Rows with a problem among keys and accounts that were just written. */
  badRows(count: number): void;
  failed(): void;
}

/** CloudWatch metrics of namespace `relay`, by stack: each one a line on the function's log (EMF). */
export function embeddedConfigMetrics(stack: string): ConfigMetrics {
  const publish = (counts: Record<string, number>): void => {
    process.stdout.write(countsLine(stack, counts));
  };
  return {
    compiled: ({ badRows, warnedRows, unpricedModels }) =>
      publish({ BadRows: badRows, WarnedRows: warnedRows, UnpricedModels: unpricedModels }),
    badRows: (BadRows) => publish({ BadRows }),
    failed: () => publish({ ConfigCompileFailed: 1 }),
  };
}
