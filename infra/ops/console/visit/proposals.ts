/**
 * Actions between their form and their end: proposed, confirmed, carried out, shown. Kept in memory, few and not for long;
 * each is carried out once, however often its button is pressed. Secrets of a result are shown once.
 */
import type { Plan } from '../../../../shared/operate/plan.ts';
import type { RowWrite } from '../../../../shared/operate/row-tables.ts';
import type { Markup } from '../layout/markup.ts';
import type { Identity, Visit } from './visit.ts';

/** What a form leads to: the effect and the questions of a plan of `shared/operate`. */
export interface Proposal {
  title: string;
  /** The path of the page that it came from, without the first slash. */
  back: string;
  effect: readonly string[];
  questions: readonly string[];
  warnings?: readonly string[];
  /** Why it may be shown but not carried out. */
  refusal?: string | undefined;
  /** More to see before one agrees: differences of rows, what they would have made of the last days. */
  details?: Markup;
  /** The words on the button. */
  verb: string;
  /** It switches something off, or moves money: the button says so by its colour. */
  grave?: boolean;
  /** Nothing is written: carried out in a console that only reads, and without a question. */
  reads?: boolean;
  /** @param onProgress says what it is at, in words */
  carryOut(onProgress: (words: string) => void): Promise<Outcome>;
}

/** What all plans say of themselves. The rest of a proposal is how it is carried out. */
export const ofPlan = (
  { effect, questions, warnings = [], refusal }: Plan<unknown>,
  words: Pick<Proposal, 'title' | 'back' | 'verb' | 'grave'>,
): Omit<Proposal, 'carryOut'> => ({ ...words, effect, questions, warnings, refusal });

/** A plan that has nothing to write may be shown, not carried out. */
export const ofWrites = (
  plan: Plan<RowWrite>,
  words: Pick<Proposal, 'title' | 'back' | 'verb' | 'grave'>,
): Omit<Proposal, 'carryOut'> => {
  const isNothing = plan.changes.length === 0;
  const refusal = plan.refusal ?? (isNothing ? plan.effect[0] : undefined);
  return { ...ofPlan(plan, words), questions: isNothing ? [] : plan.questions, refusal };
};

export interface Outcome {
  /** What was done, in sentences. */
  lines: readonly string[];
  warnings?: readonly string[];
  details?: Markup;
  /** Shown once, then forgotten. `message`: lines ready to send, which may contain it. */
  secret?: { name: string; value: string; message?: readonly string[] };
  /** Lines to send to the customer that hold no secret. */
  message?: readonly string[];
  /** Where to go from here: path and words. */
  next?: readonly (readonly [path: string, words: string])[];
}

export interface Kept {
  id: string;
  owner: string;
  proposal: Proposal;
  /** What was typed, to change it again. */
  typed: Readonly<Record<string, string>>;
  /** The form's path. */
  path: string;
  keptMs: number;
  /** Absent: it was not confirmed yet. */
  run?: Run;
}

export interface Run {
  startedMs: number;
  words: string;
  /** Absent: it is running. */
  ended?: { outcome: Outcome } | { error: unknown };
  done: Promise<void>;
}

const keptMax = 100;
const keptForMs = 30 * 60_000;
const runningMax = 4;

export class Proposals {
  readonly #kept = new Map<string, Kept>();
  readonly #newId: () => string;
  readonly #now: () => number;

  constructor({ newId, now }: { newId: () => string; now: () => number }) {
    this.#newId = newId;
    this.#now = now;
  }

  /** @returns its id */
  add({ identity, fields, path }: Pick<Visit, 'identity' | 'fields' | 'path'>, proposal: Proposal): string {
    this.#forgetOld();
    const id = this.#newId();
    const typed = proposal.reads ? {} : fields;
    this.#kept.set(id, { id, owner: identity.formToken, proposal, typed, path, keptMs: this.#now() });
    return id;
  }

  /** Of this session alone. Undefined: it is over, or there never was one. */
  find(identity: Identity, id: string): Kept | undefined {
    const kept = this.#kept.get(id);
    return kept?.owner === identity.formToken ? kept : undefined;
  }

  /** Starts it if it was not started before. False: too many run already. */
  start(kept: Kept): boolean {
    if (kept.run) return true;
    const running = [...this.#kept.values()].filter(({ run }) => run && !run.ended).length;
    if (running >= runningMax) return false;
    const run: Run = { startedMs: this.#now(), words: '', done: Promise.resolve() };
    kept.run = run;
    const work = async (): Promise<void> => {
      try {
        const outcome = await kept.proposal.carryOut((words) => {
          run.words = words;
        });
        run.ended = { outcome };
      } catch (error) {
        run.ended = { error };
      }
    };
    run.done = work();
    return true;
  }

  /** Takes the secret out of a result that is being shown. */
  takeSecret({ run }: Kept): Outcome['secret'] {
    if (!run?.ended || !('outcome' in run.ended)) return undefined;
    const { secret, ...rest } = run.ended.outcome;
    run.ended = { outcome: rest };
    return secret;
  }

  #forgetOld(): void {
    const oldest = this.#now() - keptForMs;
    for (const [id, { keptMs, run }] of this.#kept) {
      const isRunning = run !== undefined && !run.ended;
      if (!isRunning && (keptMs < oldest || this.#kept.size >= keptMax)) this.#kept.delete(id);
    }
  }
}
