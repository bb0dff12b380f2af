/** Writes rows of the configuration for all commands: shows the difference, writes, waits until it is published. */
import { awaitPublished, type ConfigPlan } from '../../../shared/operate/config/write-rows.ts';
import type { PublishedVersion, RowWrite } from '../../../shared/operate/operator-ports.ts';
import { nameOf, type Finding } from '../../../shared/operate/config/row-changes.ts';
import { carryOutWrites } from '../../../shared/operate/rows.ts';
import { isoTime } from '../../../shared/wire/iso-time.ts';
import type { CommandRun, CommandWrite } from './command.ts';
import { parseNumber } from './option-values.ts';
import { describeChanges, formatChanges } from '../fields/describe-changes.ts';
import { formatCount } from '../../../shared/operate/plan.ts';

/** Seconds. */
export interface WaitOption {
  wait: number;
}

export const waitOption = {
  '--wait <seconds>': ['how long to wait until the change is published', parseNumber, 30],
} as const;

export const defineSave = (
  { ports }: CommandRun,
  plan: ConfigPlan,
  { wait }: WaitOption,
): CommandWrite<{ written: RowWrite[]; version: PublishedVersion | undefined }> => ({
  plan,
  preview(shown) {
    formatChanges(describeChanges(plan.differences, ports.target, plan.edit)).forEach(shown.print);
    for (const { finding, written } of plan.problems)
      shown.remark(`${describeProblem(finding)}${written ? '' : ' (not part of this change)'}`);
  },
  async carryOut() {
    const written = await carryOutWrites(ports, plan);
    return { written, version: await awaitPublished(ports, wait) };
  },
  print({ print }, { written, version }) {
    const published =
      version && `Published version ${version.version} at ${isoTime(version.publishedAt * 1000)}; live`;
    print(`Saved ${formatCount(written.length, 'row')}.`);
    print(`${published ?? 'Live'} within 10 s.`);
  },
  facts: (made) => ({
    differences: plan.differences,
    ...(made && { rows: made.written.length, version: made.version?.version ?? null }),
  }),
});

export const describeProblem = (finding: Finding): string => `error: ${nameOf(finding)}: ${finding.problem}`;
