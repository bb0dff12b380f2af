/** Finds what a model can beside tools: the other questions, and the efforts that it knows. */
import type { Capabilities } from '../../../config/rows/capabilities.ts';
import { effortScale } from '../../../upstreams/quirks.ts';
import { Failure } from '../../operator-failure.ts';
import type { ProbeOutcome } from './probe-call.ts';
import type { ProbeCalls } from './probe-calls.ts';
import { otherQuestions, requestFor, type ProbeQuestion } from './probe-questions.ts';

/** Two efforts that every model with efforts knows, then the others, those first that are worth most. */
const common = ['low', 'high'] as const;
const others = ['medium', 'none', 'xhigh', 'max', 'minimal'] as const;

export interface FoundCapabilities {
  can: Capabilities;
  /** Efforts that no call was left for. */
  unasked: string[];
}

/** Throws a Failure if the upstream stops answering. */
export async function findCapabilities(calls: ProbeCalls, dialect: string): Promise<FoundCapabilities> {
  const can: Capabilities = {};
  for (const questions of otherQuestions) Object.assign(can, await askTogether(calls, dialect, questions));
  const { efforts, unasked } = await findEfforts(calls, dialect);
  return { can: { ...can, efforts }, unasked };
}

async function askTogether(
  calls: ProbeCalls,
  dialect: string,
  questions: readonly ProbeQuestion[],
): Promise<Capabilities> {
  const outcome = await calls.ask({ dialect, request: requestFor(questions) });
  const found: Capabilities = {};
  if (questions.length > 1 && outcome?.kind !== 'answered') {
    for (const question of questions) Object.assign(found, await askTogether(calls, dialect, [question]));
    return found;
  }
  for (const { capability, decide } of questions) {
    const isAble = outcome && decided(outcome, decide);
    if (isAble !== undefined) found[capability] = isAble;
  }
  return found;
}

async function findEfforts(
  calls: ProbeCalls,
  dialect: string,
): Promise<{ efforts: string[]; unasked: string[] }> {
  const known = new Set<string>();
  const unasked: string[] = [];
  const ask = async (effort: string): Promise<void> => {
    const outcome = await calls.ask({ dialect, request: requestFor([], { reasoning_effort: effort }) });
    if (outcome === undefined) unasked.push(effort);
    else if (decided(outcome, () => true)) known.add(effort);
  };
  for (const effort of common) await ask(effort);
  if (known.size > 0 || unasked.length > 0) for (const effort of others) await ask(effort);
  return { efforts: effortScale.filter((effort) => known.has(effort)), unasked };
}

/** Throws a Failure for a key that is refused by now. Undefined: the outcome does not show it. */
function decided(outcome: ProbeOutcome, decide: ProbeQuestion['decide']): boolean | undefined {
  if (outcome.kind === 'answered') return decide(outcome);
  if (outcome.kind === 'denied')
    throw new Failure(`nothing was written: the upstream refuses the key by now (${outcome.said})`);
  return outcome.kind === 'unusable' ? undefined : false;
}
