/** Writes rows of the configuration for all commands: shows the difference, writes, waits until it is published. */
import { keyAttributes } from '../../../shared/config/rows/read-table.ts';
import { awaitPublished, type ConfigPlan } from '../../../shared/operate/config/write-rows.ts';
import type { PublishedVersion, RowWrite } from '../../../shared/operate/operator-ports.ts';
import {
  nameOf,
  type Finding,
  type AttributeChange,
  type RowDifference,
} from '../../../shared/operate/config/row-changes.ts';
import { carryOutWrites } from '../../../shared/operate/rows.ts';
import { isoTime } from '../../../shared/wire/iso-time.ts';
import type { CommandRun, CommandWrite } from './command.ts';
import { parseNumber } from './option-values.ts';
import type { Terminal } from './terminal.ts';
import { formatCount } from '../../../shared/operate/plan.ts';

const shownCharactersMax = 160;

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
    printDifferences(shown, plan.differences);
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

const signs = { added: '+', removed: '-', changed: '~' };

export function printDifferences({ print }: Terminal, differences: RowDifference[]): void {
  for (const difference of differences) {
    const { table, change, attributes } = difference;
    print(`${signs[change]} ${nameOf(difference)}`);
    if (change === 'removed') continue;
    for (const attribute of attributes)
      if (attribute.name !== keyAttributes[table])
        print(`    ${attribute.name}: ${describeChange(attribute)}`);
  }
}

function describeChange({ before, after }: AttributeChange): string {
  const [old, next] = [before, after].map((value) => value !== undefined && shorten(JSON.stringify(value)));
  if (!old) return next || 'hidden: the row is invalid, so this may be a secret';
  return listWords(before, after) ?? `${old} -> ${next || '(removed)'}`;
}

/** For lists of texts, shows only what was added and removed: long lists of models differ in a few. */
function listWords(before: unknown, after: unknown): string | undefined {
  if (!isTexts(before) || !isTexts(after)) return undefined;
  const words = [
    ...after.filter((text) => !before.includes(text)).map((text) => `+ ${text}`),
    ...before.filter((text) => !after.includes(text)).map((text) => `- ${text}`),
  ];
  return words.length > 0 ? words.join('  ') : undefined;
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

const shorten = (text: string): string =>
  text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}…` : text;
