/** Checks what clients received: success only with the whole text, no wrong text, no silent end, no cut without a cause. */
import type { Attempt, CallSeen, Circumstances, Finding, Observations } from './observations.ts';

const wordsShown = 60;
const shown = (text: string): string => (text.length > wordsShown ? `${text.slice(0, wordsShown)}...` : text);

/** Faults of the process or of the reading client that explain a broken connection. */
const cutters = ['kill-answering', 'freeze', 'clock-skew'];
const slowReaders = new Set(['stalled-reader', 'slow-reader']);

export function answerFindings({ calls }: Observations, circumstances: Circumstances): Finding[] {
  return calls.flatMap((call) => {
    const attempts = circumstances.attemptsOf(call);
    const what = wrongEnd(call, attempts, circumstances) ?? wrongText(call, attempts);
    return what === undefined
      ? []
      : [{ rule: 'answer', what: `call ${call.number} (${call.fault}): ${what}` }];
  });
}

function wrongEnd(call: CallSeen, attempts: Attempt[], circumstances: Circumstances): string | undefined {
  switch (call.end) {
    case 'whole':
      if (attempts.some(({ whole, text }) => whole && text === call.text)) return undefined;
      return `says success with ${call.text.length} characters, but no upstream gave that as a whole answer`;
    case 'silent':
      return `ends in order after ${call.text.length} characters, with neither success nor an error`;
    case 'cut':
      if (slowReaders.has(call.fault) || circumstances.struck(call, cutters)) return undefined;
      return 'the connection broke, and nothing was done to it';
    case 'error':
      if (call.status !== 200 || attempts.some(({ served }) => served !== 'answer')) return undefined;
      if (slowReaders.has(call.fault) || circumstances.struck(call, [...cutters])) return undefined;
      return `ends in an error (${call.error?.code}), but its upstream answered well`;
    case 'left':
      break;
  }
  return undefined;
}

function wrongText({ text, end }: CallSeen, attempts: Attempt[]): string | undefined {
  if (end === 'whole' || text === '') return undefined;
  if (attempts.some((attempt) => attempt.text.startsWith(text))) return undefined;
  return `was given a text that no upstream wrote: "${shown(text)}"`;
}
