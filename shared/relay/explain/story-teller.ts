/**
 * Tells the stories of calls that went wrong, and counts them for their accounts. Loaded by the first such call. Must never
 * delay an answer, and never let callers fill the log: what a line of its own says already is repeated a few times a minute.
 */
import type { Refusal } from '../http/refusal.ts';
import type { Clock } from '../ports/clock.ts';
import type { RefusalCounts } from '../ports/stores/refusal-counts.ts';
import type { Explaining, Log } from '../ports/telemetry.ts';
import { RefusalTally } from './refusal-tally.ts';
import { codeOf } from './line-words.ts';
import { storyLine } from './story-line.ts';
import { endedOf, type AnsweredFacts, type EndedCall } from './ended-call.ts';
import { StoryLimits } from './story-limits.ts';

export interface StoryPorts {
  clock: Clock;
  log: Log & Explaining;
  refusals: RefusalCounts;
}

type RefusedCall = Pick<EndedCall, 'requestId' | 'endpoint' | 'model' | 'durationMs'> & {
  key: { account: string } | undefined;
  refusal: Refusal;
};

export class StoryTeller {
  readonly #ports: StoryPorts;
  readonly #tally = new RefusalTally();
  readonly #limits = new StoryLimits();

  constructor(ports: StoryPorts) {
    this.#ports = ports;
  }

  /** Whether counts wait for a call after which they are written. */
  get waits(): boolean {
    return this.#tally.isOpen;
  }

  answered(facts: AnsweredFacts): Promise<void> {
    return this.#tell(endedOf(facts));
  }

  /** `key` undefined: it was not found. */
  refused({ key, ...facts }: RefusedCall): Promise<void> {
    const { refusal } = facts;
    return this.#tell({ ...facts, account: key?.account, status: refusal.status, end: 'refused' });
  }

  async #tell(ended: EndedCall): Promise<void> {
    const nowMs = this.#ports.clock.now();
    if (this.#limits.allow(ended, nowMs)) this.#ports.log.explain(storyLine(ended));
    const { account, refusal } = ended;
    if (account !== undefined && refusal) this.#tally.count(account, codeOf(refusal), nowMs);
    if (this.waits) await this.write();
  }

  /** What cannot be written is lost: these are counts for people, not money. */
  async write(): Promise<void> {
    const { clock, refusals } = this.#ports;
    const due = this.#tally.due(clock.now());
    if (due.length === 0) return;
    // In a later turn the host has written the last byte of a refusal, which it gets only now.
    await clock.sleep(0);
    await Promise.all(due.map((one) => refusals.add(one)));
  }
}
