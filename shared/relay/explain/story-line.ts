/**
 * The line `explain` of a call: what was decided, in the order of time, in fixed words, numbers and names of rows. Must never
 * hold text of a client or an upstream, nor a secret's reference, and is at most 2 KB whatever the names are.
 */
import type { ChatCall } from '../call/chat-call.ts';
import type { Refusal } from '../http/refusal.ts';
import { passedLine, passedOverOf, triedLine } from './candidate-lines.ts';
import type { DispatchedFacts, EndedCall } from './ended-call.ts';
import { codeMax, codeOf, name, nameMax, namesOf } from './line-words.ts';
import { storyCauses } from './story-causes.ts';

/** Of the members here, in bytes: with what each line has the whole is below 2 KB. */
const bytesMax = 1_800;

type Line = Record<string, unknown>;

export function storyLine(ended: EndedCall): Line {
  const { dispatched, refusal } = ended;
  return fitting({
    request_id: name(ended.requestId),
    endpoint: name(ended.endpoint),
    account: name(ended.account),
    model: name(ended.model),
    why: storyCauses(ended).join(' '),
    client: clientOf(ended),
    ...(refusal && { reason: name(refusal.reason, 2 * nameMax), facts: factsOf(refusal) }),
    ...(dispatched && dispatchLine(dispatched)),
  });
}

function clientOf({ status, refusal, durationMs, end, dispatched }: EndedCall): Line {
  const { length = 0, firstMs } = dispatched?.heard ?? {};
  const startedMs = dispatched?.call.startedMs ?? 0;
  return {
    status,
    code: refusal && name(codeOf(refusal), codeMax),
    param: refusal?.body.error.param != null || undefined,
    ms: durationMs,
    first_ms: firstMs === undefined ? undefined : firstMs - startedMs,
    length: length || undefined,
    left: end === 'client_gone' || undefined,
    retry_after: number(refusal?.headers['retry-after']),
  };
}

const number = (text: string | undefined): number | undefined => {
  const value = Number(text);
  return text !== undefined && Number.isFinite(value) ? value : undefined;
};

const factsOf = ({ facts }: Refusal): Line | undefined =>
  facts &&
  Object.fromEntries(
    Object.entries(facts)
      .slice(0, 4)
      .map(([fact, value]) => [fact, typeof value === 'string' ? name(value) : value]),
  );

function dispatchLine({ call, report, reserved }: DispatchedFacts): Line {
  const story = report.story?.() ?? { tried: [], uncarried: [], order: undefined };
  const { tried } = story;
  const { startedMs } = call;
  const { shown, more } = passedOverOf(story);
  return {
    alias: name(call.alias?.name),
    channel: name(report.tried.at(-1)?.channel),
    usual_ms: report.usualMs,
    first_content_ms: report.firstContentMs,
    search: report.search,
    tried: tried.map((one) => triedLine(one, call)),
    passed_over: shown.length > 0 ? shown.map((one) => passedLine(one, startedMs, call)) : undefined,
    more_candidates: more || undefined,
    reserved: reserved && {
      yuan: reserved.yuan,
      plan_slot: name(reserved.slot) || undefined,
      max_tokens: call.outputTokensLimit,
      limited_by: call.limitedBy,
    },
    dropped: namesOf(report.sent.dropped),
    sent: namesOf(sentNames(call)),
  };
}

/** The fields that the relay knows; clients make up the names of others. */
const sentNames = ({ request }: ChatCall): string[] =>
  Object.entries(request)
    .filter(([, value]) => value !== undefined)
    .map(([field]) => field);

/** Without what says least, until it fits: so no name and no number of them makes a line too long. */
function fitting(line: Line): Line {
  const fits = (): boolean => JSON.stringify(line).length <= bytesMax;
  for (const least of ['sent', 'dropped', 'passed_over', 'facts', 'tried', 'reason']) {
    if (fits()) break;
    delete line[least];
    line['shortened'] = true;
  }
  return line;
}
