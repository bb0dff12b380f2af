/** Checks the causes of refusals: each refusal must name the fault that was injected. */
import {
  skewMaxMs,
  type Attempt,
  type CallSeen,
  type Circumstances,
  type Finding,
  type Observations,
} from './observations.ts';

interface Cause {
  status: readonly number[];
  type: string;
  code?: string;
}

const busy: Cause = { status: [429], type: 'rate_limit_error', code: 'rate_limit_exceeded' };
const failing: Cause = { status: [502], type: 'upstream_error' };
const tooSlow: Cause = { status: [504], type: 'upstream_error', code: 'upstream_timeout' };
const noStore: Cause = { status: [503], type: 'internal_error', code: 'unavailable' };
const wrongRequest: Cause = { status: [400, 401, 404, 413, 422], type: '' };

const rateLimits = new Set(['rate-limited', 'rate-limited-retry-after']);
const hangs = new Set(['hang-before-headers', 'hang-between-chunks']);
const storeKinds = ['store-throttled', 'store-down', 'store-reply-lost', 'store-slow'];
const processKinds = ['kill-answering', 'clock-skew', 'freeze'];
/** A restarted process reads its configuration again, and the emulator of Lambda fails one call for each failed start. */
const aftermathMs = 3_000;
/** Messages and clocks use whole seconds. */
const roundingMs = 1_500;

export function causeFindings(seen: Observations, circumstances: Circumstances): Finding[] {
  return seen.calls.flatMap((call) => {
    const what = call.end === 'error' ? wrongCause(call, seen, circumstances) : undefined;
    return what === undefined
      ? []
      : [{ rule: 'cause', what: `call ${call.number} (${call.fault}): ${what}` }];
  });
}

function wrongCause(call: CallSeen, seen: Observations, circumstances: Circumstances): string | undefined {
  const { status, error, expectedStatus } = call;
  if (expectedStatus !== undefined && status === expectedStatus) return undefined;
  const attempts = circumstances.attemptsOf(call);
  const isPlatform = status !== 200 && error?.type === undefined;
  if (isPlatform) {
    if (circumstances.struck(call, processKinds, aftermathMs)) return undefined;
    return `the host answered ${status}; ${circumstancesOf(call, circumstances)}`;
  }
  const causes = causesOf(call, attempts, seen, circumstances);
  if (causes.some((cause) => isCause(cause, call))) return wrongTime(call, attempts, seen);
  const served = attempts.map((attempt) => attempt.served).join(', ') || 'never asked';
  const named = `${status} ${error?.type} ${error?.code} "${error?.message ?? ''}"`;
  return `refused with ${named}; its upstream: ${served}; ${circumstancesOf(call, circumstances)}`;
}

function isCause({ status, type, code }: Cause, { status: given, error }: CallSeen): boolean {
  // An error inside a stream has no HTTP status.
  if (given !== 200 && !status.includes(given ?? 0)) return false;
  if (type !== '' && error?.type !== type) return false;
  return code === undefined || error?.code === code;
}

function causesOf(call: CallSeen, attempts: Attempt[], seen: Observations, around: Circumstances): Cause[] {
  const causes: Cause[] = [];
  for (const { served } of attempts) {
    if (rateLimits.has(served)) causes.push(busy);
    else if (hangs.has(served)) causes.push(tooSlow);
    else if (served === 'caller-error') causes.push(wrongRequest);
    else if (served !== 'answer') causes.push(failing);
  }
  if (call.fault === 'refused-connection') causes.push(failing);
  if (attempts.length === 0 && waitOf(call, seen) !== undefined) causes.push(busy);
  // Nothing was charged, so the upstream was not called.
  if (attempts.length === 0 && around.struck(call, storeKinds, 0)) causes.push(noStore);
  if (around.struck(call, ['freeze', 'clock-skew'])) causes.push(noStore, tooSlow, failing);
  return causes;
}

/** When the Retry-After of the model's upstream ends, if it was still running when the call arrived. */
function waitOf(
  { model, startedMs, endedMs }: CallSeen,
  { attempts, disturbances }: Observations,
): number | undefined {
  const skewed = disturbances.some(({ kind, fromMs }) => kind === 'clock-skew' && fromMs <= endedMs);
  const ends = attempts
    .filter(({ model: other, retryAfterSeconds }) => other === model && retryAfterSeconds !== undefined)
    .filter(({ atMs }) => atMs <= endedMs)
    .map(
      ({ atMs, retryAfterSeconds = 0 }) =>
        atMs + retryAfterSeconds * 1000 + roundingMs + (skewed ? skewMaxMs : 0),
    );
  const last = Math.max(-Infinity, ...ends);
  return last >= startedMs ? last : undefined;
}

/** The client must get the time that the upstream sent. */
function wrongTime(call: CallSeen, attempts: Attempt[], seen: Observations): string | undefined {
  const { retryAfterSeconds, status, endedMs } = call;
  if (status !== 429) return undefined;
  if (retryAfterSeconds === undefined) return 'a 429 without Retry-After';
  const end = waitOf(call, seen);
  if (end === undefined || attempts.some(({ served }) => served === 'rate-limited')) return undefined;
  if (endedMs + retryAfterSeconds * 1000 <= end + 2 * roundingMs) return undefined;
  return `Retry-After is ${retryAfterSeconds}, but the upstream wants no more than ${Math.ceil((end - endedMs) / 1000)} s`;
}

function circumstancesOf(call: CallSeen, circumstances: Circumstances): string {
  const kinds = [
    ...storeKinds,
    ...processKinds,
    'kill-background',
    'price-edit',
    'bad-row',
    'channel-deleted',
  ];
  const struck = kinds.filter((kind) => circumstances.struck(call, [kind]));
  return struck.length > 0 ? `meanwhile: ${struck.join(', ')}` : 'nothing else was done meanwhile';
}
