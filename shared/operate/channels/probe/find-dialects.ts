/**
 * Finds the dialects that an upstream speaks, and whether it takes tools. A dialect in which it refuses tools counts
 * only where it takes them in none, since agents cannot use it there.
 */
import { Failure } from '../../operator-failure.ts';
import type { ProbeAnswer, ProbeOutcome } from './probe-call.ts';
import type { ProbeCalls } from './probe-calls.ts';
import { requestFor, toolsQuestion, type ProbeQuestion } from './probe-questions.ts';

export interface SpokenDialects {
  /** In the order of `wanted`; at least one. */
  dialects: string[];
  /** The answer to the call with tools in the first of them. Undefined: tools are refused. */
  toolsAnswer: ProbeAnswer | undefined;
  /** An answer in the first of them. */
  answer: ProbeAnswer;
}

/**
 * Throws a Failure if the upstream answers in none, or not at all.
 * @param wanted the dialects to ask in; the row's own first
 */
export async function findDialects(calls: ProbeCalls, wanted: readonly string[]): Promise<SpokenDialects> {
  const withTools = await askIn(calls, wanted, [toolsQuestion]);
  const [first] = answersIn(withTools);
  if (first) {
    const dialects = answersIn(withTools).map(({ dialect }) => dialect);
    return { dialects, toolsAnswer: first.answer, answer: first.answer };
  }
  const refused = withTools.filter(({ outcome: { kind } }) => kind === 'refused' || kind === 'unsent');
  const plain = await askIn(
    calls,
    refused.map(({ dialect }) => dialect),
    [],
  );
  const [spoken] = answersIn(plain);
  if (!spoken) throw noDialect([...withTools.filter((asked) => !refused.includes(asked)), ...plain]);
  const dialects = answersIn(plain).map(({ dialect }) => dialect);
  return { dialects, toolsAnswer: undefined, answer: spoken.answer };
}

interface AskedDialect {
  dialect: string;
  outcome: ProbeOutcome;
}

async function askIn(
  calls: ProbeCalls,
  dialects: readonly string[],
  questions: ProbeQuestion[],
): Promise<AskedDialect[]> {
  const asked: AskedDialect[] = [];
  for (const dialect of dialects) {
    const outcome = await calls.ask({ dialect, request: requestFor(questions) });
    if (outcome) asked.push({ dialect, outcome });
  }
  return asked;
}

const answersIn = (asked: AskedDialect[]): { dialect: string; answer: ProbeAnswer }[] =>
  asked.flatMap(({ dialect, outcome }) =>
    outcome.kind === 'answered' ? [{ dialect, answer: outcome }] : [],
  );

function noDialect(asked: AskedDialect[]): Failure {
  const saidIn = ({ dialect, outcome }: AskedDialect): string =>
    `${dialect}: ${'said' in outcome ? outcome.said : 'nothing to send'}`;
  const denied = asked.find(({ outcome }) => outcome.kind === 'denied');
  return new Failure(
    denied
      ? `nothing was written: the upstream refuses the key (${saidIn(denied)})`
      : `nothing was written: the upstream answers in no dialect. ${asked.map(saidIn).join('; ')}`,
  );
}
