/**
 * Tells the stories of calls that went wrong, and counts them for their accounts. Loaded by the first such call. Must never
 * delay an answer, and never let callers fill the log: what a line of its own says already is repeated a few times a minute.
 */
import { type Refusal, isRefusalCode } from './http/refusal.ts';
import type { Clock } from './ports/host.ts';
import type { RefusalCounts, HourOfRefusals } from './ports/money-stores.ts';
import type { Explaining, Log } from './ports/telemetry.ts';
import { formatYuan, type NanoYuan } from '../billing/amount.ts';
import type {
  ChatCall,
  DispatchReport,
  Candidate,
  DispatchStory,
  PassedOver,
  TriedCandidate,
} from './call/call.ts';
import { vendorWord } from '../upstreams/read-failure.ts';

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

// How many stories there may be, so that no caller fills the log.

/**
 * Stories of a minute and environment. The request's line of a caller without an account has all that is known; what a caller
 * alone brings about (refusals, also by an upstream, and leaving) repeats, and of slow calls a few say what is slow. What
 * failed at an upstream always has its story.
 */
const storiesMax = { stranger: 5, caller: 60, slow: 20, other: Infinity } as const;
type StoryClass = keyof typeof storiesMax;

/** One for each environment. */
export class StoryLimits {
  #minute = -1;
  #stories = new Map<StoryClass, number>();

  /** Counts a story. */
  allow(ended: EndedCall, nowMs: number): boolean {
    const minute = Math.floor(nowMs / 60_000);
    if (minute !== this.#minute) this.#stories = new Map();
    this.#minute = minute;
    const kind = classOf(ended);
    const count = (this.#stories.get(kind) ?? 0) + 1;
    this.#stories.set(kind, count);
    return count <= storiesMax[kind];
  }
}

function classOf(ended: EndedCall): StoryClass {
  if (ended.account === undefined) return 'stranger';
  const why = storyCauses(ended).join();
  if (!ended.dispatched || why === 'refused' || why === 'client_gone') return 'caller';
  return why === 'slow' ? 'slow' : 'other';
}

// Why a call has a story.

export type StoryCause = 'failed' | 'refused' | 'retried' | 'slow' | 'client_gone';

/** Empty: nobody will ask. */
export function storyCauses({ end, refusal, dispatched }: EndedCall): StoryCause[] {
  const { tried = [], usualMs } = dispatched?.report ?? {};
  return [
    ...(refusal ? [isOfCaller(refusal) ? ('refused' as const) : ('failed' as const)] : []),
    ...(tried.length > 1 ? ['retried' as const] : []),
    ...(usualMs === undefined || refusal ? [] : ['slow' as const]),
    ...(end === 'client_gone' ? ['client_gone' as const] : []),
  ];
}

/** As the outcome of the request's line has it. */
function isOfCaller({ status, body, reason = '' }: Refusal): boolean {
  const { code } = body.error;
  if (code === 'rate_limit_exceeded') return reason.startsWith('limit_');
  return status < 500;
}

// A call that has ended, for its story: what its stages returned.

export interface EndedCall {
  requestId: string;
  endpoint: string;
  /** Undefined: the key was not found, so nobody is known. */
  account: string | undefined;
  /** As it was asked for, where none answered. */
  model: string | undefined;
  status: number;
  /** `completed`, `failed`, `refused`, `client_gone`. */
  end: string;
  refusal: Refusal | undefined;
  durationMs: number;
  /** Undefined: it was refused before anything was sent to an upstream. */
  dispatched?: DispatchedFacts | undefined;
}

export interface DispatchedFacts {
  call: ChatCall;
  report: DispatchReport;
  /** Undefined: nothing was. */
  reserved: ReservedFacts | undefined;
  heard: HeardFacts;
}

/** What was reserved. */
export interface ReservedFacts {
  /** Exact yuan. */
  yuan: string;
  /** Empty: the balance pays. */
  slot: string;
}

/** What the client was sent. Of a call that has no client, what it would have been. */
export interface HeardFacts {
  /** UTF-16 code units of the answer. */
  length: number;
  /** When the first of it was, in epoch milliseconds. Undefined: none was. */
  firstMs: number | undefined;
}

/** What the answer of a call came to. */
export interface AnsweredFacts {
  call: ChatCall;
  report: DispatchReport;
  ending: Pick<EndedCall, 'status' | 'end' | 'refusal' | 'durationMs'>;
  reserved: { entry: { amount: NanoYuan; slot: string } } | undefined;
  heard: HeardFacts;
}

export const endedOf = ({ call, report, ending, reserved, heard }: AnsweredFacts): EndedCall => ({
  requestId: call.identity.requestId,
  endpoint: call.endpoint,
  account: call.key.account,
  model: call.model.base,
  ...ending,
  dispatched: {
    call,
    report,
    reserved: reserved && { yuan: formatYuan(reserved.entry.amount), slot: reserved.entry.slot },
    heard,
  },
});

// The words that a story may have: names of rows, cut and without odd characters, and codes that are known.

export const nameMax = 48;
export const codeMax = 40;
const namesMax = 24;

/** One character is one byte: all others become a question mark. */
export const name = (text: string | undefined, lengthMax = nameMax): string | undefined =>
  text?.slice(0, lengthMax).replaceAll(/[^\w .:/@+#-]/g, '?');

/** The word of an error, if it is one of the relay's or of those that vendors publish. */
export function codeOf({ status, body }: Refusal): string {
  const { code } = body.error;
  if (isRefusalCode(code) || ownCodes.has(code)) return code;
  const word = vendorWord({ code });
  return word && word !== 'other' ? word : status < 500 ? 'invalid_request' : 'other';
}

/** Of what the relay itself finds wrong with a request. */
const ownCodes: ReadonlySet<string> = new Set([
  'invalid_type',
  'invalid_value',
  'missing_required_parameter',
  'unsupported_parameter',
  'unsupported_content',
  'invalid_idempotency_key',
]);

export function namesOf(fields: readonly string[]): string[] | undefined {
  const names = [...new Set(fields)].filter((field) => /^[\w.[\]-]{1,32}$/.test(field)).slice(0, namesMax);
  return names.length > 0 ? names : undefined;
}

// The line `explain` of a call: what was decided, in the order of time, in fixed words, numbers and names of rows. Must never
// hold text of a client or an upstream, nor a secret's reference, and is at most 2 KB whatever the names are.

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

// What a story says of one candidate. Secrets are numbers: their references are nobody's business.

/** Times in milliseconds from the request's arrival; `ms`: how long it took to fail, or to its first content. */
export function triedLine(one: TriedCandidate, { startedMs, candidates }: ChatCall): Line {
  const { candidate, outcome, contentMs, endedMs, standing, forms, attempt, vendorCode } = one;
  const until = contentMs ?? endedMs;
  return {
    channel: name(candidate.channel.id),
    secret: secretOf(candidate, candidates),
    outcome: name(outcome, codeMax),
    status: attempt.report().upstreamStatus,
    code: name(vendorCode, codeMax),
    at: one.startedMs - startedMs,
    ms: until === undefined ? undefined : until - one.startedMs,
    broke_at: contentMs !== undefined && endedMs !== undefined ? endedMs - startedMs : undefined,
    stood: standing?.is,
    forms,
  };
}

/** `seconds`: how long it still rested when the call began. */
export const passedLine = (
  { candidate, is, kind, untilMs }: PassedOver,
  startedMs: number,
  { candidates }: ChatCall,
): Line => ({
  channel: name(candidate.channel.id),
  secret: secretOf(candidate, candidates),
  why: is,
  kind,
  seconds: untilMs === undefined ? undefined : Math.ceil((untilMs - startedMs) / 1000),
});

/** Which of its channel's secrets, as a number from 1. Undefined: there is no other. */
function secretOf(candidate: Candidate, candidates: readonly Candidate[]): number | undefined {
  const own = candidates.filter(
    ({ channel, model }) => channel.id === candidate.channel.id && model === candidate.model,
  );
  return own.length > 1 ? own.indexOf(candidate) + 1 : undefined;
}

const passedOverMax = 4;

/** Those that something is known against, and how many more were not tried. */
export function passedOverOf({ tried, uncarried, order }: DispatchStory): {
  shown: PassedOver[];
  more: number;
} {
  const known = new Set([...tried.map((one) => one.candidate), ...uncarried]);
  const left = order?.candidates.filter((candidate) => !known.has(candidate)) ?? [];
  const against = left.flatMap((candidate) => order?.passedOver(candidate) ?? []);
  const shown = [
    ...uncarried.map((candidate): PassedOver => ({ candidate, is: 'cannot_carry' })),
    ...against.filter(({ is }) => is !== 'not_needed'),
  ].slice(0, passedOverMax);
  return { shown, more: uncarried.length + left.length - shown.length };
}

// Counts what calls of accounts ended with, by hour and code, until it is written. Bounded in every direction.

/** Accounts that failed within a minute in one environment. What others come to is not counted. */
const accountsMax = 200;
const writePauseMs = 60_000;
/** Of one write to the next call: the others are written after the next one. */
const writesMax = 10;

interface Kept {
  writtenMs: number;
  hours: Map<string, Record<string, number>>;
}

export class RefusalTally {
  readonly #accounts = new Map<string, Kept>();
  #open = 0;

  /** Whether anything is not written yet. */
  get isOpen(): boolean {
    return this.#open > 0;
  }

  /** `code` is one of a fixed set. */
  count(account: string, code: string, nowMs: number): void {
    const kept = this.#accounts.get(account) ?? this.#added(account, nowMs);
    if (!kept) return;
    const hour = new Date(nowMs).toISOString().slice(0, 13);
    const counts = kept.hours.get(hour) ?? {};
    if (!kept.hours.has(hour)) this.#open += 1;
    kept.hours.set(hour, { ...counts, [code]: (counts[code] ?? 0) + 1 });
  }

  /** Takes what may be written now: of an account once a minute. */
  due(nowMs: number): HourOfRefusals[] {
    const due: HourOfRefusals[] = [];
    for (const [account, kept] of this.#accounts) {
      if (kept.hours.size === 0 || nowMs - kept.writtenMs < writePauseMs) continue;
      for (const [hour, counts] of kept.hours) {
        due.push({ account, hour, counts });
        kept.hours.delete(hour);
        this.#open -= 1;
        kept.writtenMs = nowMs;
        if (due.length === writesMax) return due;
      }
    }
    return due;
  }

  #added(account: string, nowMs: number): Kept | undefined {
    if (this.#accounts.size >= accountsMax)
      for (const [known, { hours, writtenMs }] of this.#accounts)
        if (hours.size === 0 && nowMs - writtenMs >= writePauseMs) this.#accounts.delete(known);
    if (this.#accounts.size >= accountsMax) return undefined;
    const kept: Kept = { writtenMs: -Infinity, hours: new Map() };
    this.#accounts.set(account, kept);
    return kept;
  }
}
