/** The text of a candidate's health, 33 characters at most. Every version that runs reads it: forms are only added. */
import type { HealthEntry, RestKind } from '../../../relay/ports/stores/channel-health.ts';

const kindLetters = { rate_limit: 'L', credentials: 'C', failing: 'F' } as const satisfies Record<
  RestKind,
  string
>;
const kinds = new Map<string, RestKind>([
  ['L', 'rate_limit'],
  ['C', 'credentials'],
  ['F', 'failing'],
]);
/** Numbers are written in base 36, whose letters are small; a capital says what follows. */
const restForm = /^([LCF])([0-9a-z]{1,10})(?:S([0-9a-z]{1,10}))?(?:P([0-9a-z]{1,10}))?(?:A([0-9a-z]{1,8}))?$/;
const runForm = /^N([1-9])T([0-9a-z]{1,10})A([0-9a-z]{1,8})(?:A([0-9a-z]{1,8}))?$/;

const digits = (value: number): string => Math.ceil(value).toString(36);
const valueOf = (text: string): number => Number.parseInt(text, 36);

export function entryText(entry: HealthEntry): string {
  if (entry.kind === 'failures') {
    const { count, accounts, lastMs } = entry;
    return `N${Math.min(count, 9)}T${digits(lastMs)}${accounts.map((account) => `A${account}`).join('')}`;
  }
  const { kind, untilMs, statedUntilMs, probeUntilMs, failedBy } = entry;
  const stated = statedUntilMs === undefined ? '' : `S${digits(statedUntilMs)}`;
  const probe = probeUntilMs === undefined ? '' : `P${digits(probeUntilMs)}`;
  const account = failedBy === undefined ? '' : `A${failedBy}`;
  return `${kindLetters[kind]}${digits(untilMs)}${stated}${probe}${account}`;
}

/** Undefined: not of this form, such as a later version's. */
export function entryOf(text: string): HealthEntry | undefined {
  const [, letter = '', until, stated, probe, failedBy] = restForm.exec(text) ?? [];
  const kind = kinds.get(letter);
  if (kind !== undefined && until !== undefined)
    return {
      kind,
      untilMs: valueOf(until),
      ...(stated !== undefined && { statedUntilMs: valueOf(stated) }),
      ...(probe !== undefined && { probeUntilMs: valueOf(probe) }),
      ...(failedBy !== undefined && { failedBy }),
    };
  const [, count, last, ...accounts] = runForm.exec(text) ?? [];
  if (count === undefined || last === undefined) return undefined;
  const known = accounts.filter((account) => account !== undefined);
  return { kind: 'failures', count: Number(count), accounts: known, lastMs: valueOf(last) };
}
