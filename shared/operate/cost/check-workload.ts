/** Whether a month of calls can be. */
import { usageFailure } from '../operator-failure.ts';
import { regions } from './aws-prices.ts';
import { atRest } from './background-amounts.ts';
import type { Workload } from './workload.ts';

/** Throws a usage failure for a month that cannot be. */
export function checkWorkload(workload: Workload): void {
  const { region, calls, callsPerSecond, seconds, memoryMegabytes } = workload;
  if (!regions.includes(region))
    throw usageFailure(`no prices of ${region as string}: known are ${regions.join(', ')}`);
  for (const [name, value] of Object.entries(workload))
    if (typeof value === 'number' && !(value >= 0 && Number.isFinite(value)))
      throw usageFailure(`${name}: wanted a number of 0 or more`);
  if (memoryMegabytes < 128) throw usageFailure('memory: Lambda has functions from 128 MB on');
  if (calls > 0 && (callsPerSecond === 0 || seconds === 0))
    throw usageFailure('calls need a rate and a duration above 0');
  const most = callsPerSecond * atRest.hours * 3600;
  if (calls > most)
    throw usageFailure(
      `${calls} calls do not fit into a month of ${callsPerSecond} a second: set a higher rate`,
    );
}
