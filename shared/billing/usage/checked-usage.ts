import type { ChatUsage, PromptTokensDetails, ReportedUsage } from '../../wire/chat-response.ts';
import type { StreamedText } from './estimates.ts';
import type { UsageFault, UsageFlag } from './usage-flags.ts';

/** What the counts of one answer are compared with. Functions are slow and called only when needed. */
export interface UsageBounds {
  streamed: Pick<StreamedText, 'visible' | 'all'>;
  inputBelow(): number;
  inputUnbiased(): number;
  inputMax(): number;
  /** The most that request and model allow, for all choices. */
  outputMax: number;
  /** The answer broke off. */
  isCut: boolean;
}

/** The counts that are charged and shown, and which of them are not the upstream's. */
export interface CheckedUsage {
  usage: ChatUsage;
  flags: readonly UsageFlag[];
}

/** Share of the estimate from below that a count must reach: estimates are up to 16 % off. */
const shareMin = 0.7;
/** More than any model can read or write in one call. */
const tokensMax = 100_000_000;

interface Counted {
  count: number;
  fault?: UsageFault | undefined;
}

/**
 * Takes each count that the upstream reported and that is plausible, and estimates the others, input and output each for
 * itself. Reasoning may be hidden, so output above the streamed text is plausible up to the limit. It may also be shown
 * and not counted, so of a whole answer only text and calls say how many tokens there are at least. The count of one that
 * broke off may be from its start.
 */
export function checkedUsage(reported: ReportedUsage = {}, bounds: UsageBounds): CheckedUsage {
  const input = inputOf(reported, bounds);
  const output = outputOf(reported, bounds);
  const split = splitOf(reported, input.count);
  const inputFault = input.fault ?? split.fault;
  const flags: UsageFlag[] = [];
  if (inputFault) flags.push(`input:${inputFault}`);
  if (output.fault) flags.push(`output:${output.fault}`);
  const reasoning = output.fault ? 0 : Math.max(0, Math.min(reported.reasoning ?? 0, output.count));
  return {
    flags,
    usage: {
      prompt_tokens: input.count,
      completion_tokens: output.count,
      total_tokens: input.count + output.count,
      prompt_tokens_details: split.details,
      completion_tokens_details: { reasoning_tokens: reasoning },
    },
  };
}

function inputOf({ input, cached = 0, written = 0 }: ReportedUsage, bounds: UsageBounds): Counted {
  const { isCut } = bounds;
  const estimated = (fault: UsageFault): Counted => ({ count: bounds.inputUnbiased(), fault });
  if (input === undefined) return estimated(isCut ? 'partial' : 'absent');
  if (!isPossible(input)) return estimated('impossible');
  const isHigh = (count: number): boolean => count > bounds.inputUnbiased() && count > bounds.inputMax();
  const least = shareMin * bounds.inputBelow();
  if (input < least || input === 0) {
    // A vendor that leaves out what its cache held.
    const whole = input + cached + written;
    const isExplained =
      whole > 0 && isPossible(cached) && isPossible(written) && whole >= least && !isHigh(whole);
    return isExplained ? { count: whole } : estimated('low');
  }
  return isHigh(input) ? estimated('high') : { count: input };
}

function outputOf({ output }: ReportedUsage, { streamed, outputMax, isCut }: UsageBounds): Counted {
  const estimated = (fault: UsageFault): Counted => ({ count: streamed.all.unbiased, fault });
  if (output === undefined) return estimated(isCut ? 'partial' : 'absent');
  if (!isPossible(output)) return estimated('impossible');
  // One token is not below the estimate of a short text, but none is too few for any.
  const { below, unbiased } = isCut ? streamed.all : streamed.visible;
  const isNone = output === 0 && unbiased > 0;
  if (isNone || output < shareMin * below) return estimated(isCut ? 'partial' : 'low');
  // Above the limit the text shows what was written; its estimate must not be more than the upstream itself asks for.
  const isHigh = output > outputMax && output > streamed.all.unbiased;
  return isHigh ? estimated('high') : { count: output };
}

/**
 * The cache counts as parts of the input, whose total is what is charged. Reads come before writes and writes before
 * writes for an hour: what an upstream counts twice is then never in the part with the higher price.
 */
function splitOf(
  { cached = 0, written, writtenForHour = 0 }: ReportedUsage,
  input: number,
): { details: PromptTokensDetails; fault?: UsageFault } {
  const isUsable = [cached, written ?? 0, writtenForHour].every(isPossible) && cached <= input;
  if (!isUsable) return { details: { cached_tokens: 0 }, fault: 'cache' };
  const wrote = Math.min(written ?? 0, input - cached);
  const forHour = Math.min(writtenForHour, wrote);
  const details: PromptTokensDetails = {
    cached_tokens: cached,
    // Absent and zero differ for clients: upstreams that never report writes have no such count.
    ...(written !== undefined && { cache_write_tokens: wrote - forHour }),
    ...(forHour > 0 && { cache_write_1h_tokens: forHour }),
  };
  return { details };
}

const isPossible = (count: number): boolean => count >= 0 && count <= tokensMax;
