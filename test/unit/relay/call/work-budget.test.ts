/** The limit on the work that one request may cause, all parts together. */
import { describe, expect, it } from 'vitest';
import { readJsonBody } from '../../../../shared/adapters/entry/http-entry.ts';
import { WorkBudget } from '../../../../shared/relay/money/admission.ts';
import type { Refusal } from '../../../../shared/relay/http/refusal.ts';
import { StoredReader } from '../../../../shared/relay/stored/reads.ts';
import { MemoryStored } from '../../../support/memory-stored.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const million = 1024 * 1024;
const codeOf = (work: () => void): string => {
  try {
    work();
  } catch (error) {
    return (error as Refusal).body.error.code;
  }
  return 'done';
};

describe('the work of one request', () => {
  it('has room for a long session: 30 MB, 20,000 values, 200 states of 64 KB, a file', () => {
    const work = new WorkBudget();
    work.readBody(30 * million, 20_000);
    for (let at = 0; at < 200; at += 1) expect(work.openState(64 * 1024)).toBe(true);
    expect(work.limitInflate(() => 'x'.repeat(million))(new Uint8Array(), million)).toHaveLength(million);
  });

  it.each<[string, (work: WorkBudget) => void]>([
    ['a body', (work) => work.readBody(64 * million, 200_000)],
    ['stored responses', (work) => work.readStored(32 * million)],
  ])('has room for %s of the largest size, and for nothing after it', (_case, most) => {
    const work = new WorkBudget();
    most(work);
    expect(codeOf(() => work.readStored(33 * million))).toBe('too_much_work');
    expect(codeOf(() => work.readBody(64 * million, 200_000))).toBe('too_much_work');
    expect(codeOf(() => void work.limitInflate(() => 'x'.repeat(32 * million))(new Uint8Array(), 1))).toBe(
      'too_much_work',
    );
    expect(work.openState(128 * million)).toBe(false);
  });

  it('is counted for a body before parsing and for stored responses before unpacking', async () => {
    const drawn: number[][] = [];
    await readJsonBody('[1,2,3]', '', undefined, { counted: (...counts) => void drawn.push(counts) });
    expect(drawn).toEqual([[7, 4]]);
    const counted = (): void => {
      throw new Error('too much');
    };
    await expect(readJsonBody('not JSON', '', undefined, { counted })).rejects.toThrow('too much');
    const work = new WorkBudget();
    work.readBody(100 * million, 0);
    const clock = new VirtualClock();
    const stored = new MemoryStored(clock);
    const reader = new StoredReader({ clock, random: { next: () => 0 }, stored }, 'acme', { work });
    expect(codeOf(() => reader.admit(15 * million))).toBe('too_much_work');
    expect(codeOf(() => reader.admit(13 * million))).toBe('done');
  });
});
