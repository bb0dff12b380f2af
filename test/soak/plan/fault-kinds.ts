/** All faults that a soak injects, by name. The report counts by these names. */

/** Faults of an upstream in one call. */
export const upstreamFaults = {
  'hang-before-headers': 'accepts the request and sends nothing until the relay gives up',
  'hang-between-chunks': 'stops in the middle of an answer and keeps the connection open',
  'reset-before-headers': 'resets the connection before it sends anything',
  'reset-mid-stream': 'resets the connection in the middle of an answer',
  'odd-sse': 'CRLF, comments, no space after "data:", text split inside a character, data after [DONE]',
  'broken-sse': 'a line that is not JSON in the middle, then the end',
  'error-in-200': 'status 200, then an error object and no content',
  'error-mid-stream': 'an error object after some content',
  'no-usage': 'a complete answer without counts',
  'absurd-usage': 'a complete answer with impossible counts',
  'rate-limited': '429 without Retry-After',
  'rate-limited-retry-after': '429 with Retry-After',
  'server-error': '500, 502, 503 or a page of HTML',
  'refused-key': '401',
  'unasked-gzip': 'a compressed answer that was not requested',
  flood: 'text without end',
  'slow-answer': 'a complete answer, with long pauses between chunks',
  'late-answer': 'nothing for 22 s, then a complete answer',
  'empty-answer': '200 and nothing',
  'refused-connection': 'nothing listens at the channel’s address',
  'caller-error': '400 with an error object: the request is invalid',
} as const;

/** Faults of a client. */
export const clientFaults = {
  'slow-reader': 'reads a long answer in small pieces',
  'stalled-reader': 'stops reading a long answer for 35 s, then reads the rest',
  'hang-up-early': 'hangs up before the answer starts',
  'hang-up-late': 'hangs up in the middle of an answer',
  'bad-request': 'invalid JSON, an unknown model, an unknown key or a missing field',
} as const;

/** Faults of the stack, independent of calls. */
export const stackFaults = {
  'kill-answering': 'kill -9 of a process of chat or responses',
  'kill-background': 'kill -9 of a process of config, ledger, grants or sweeper',
  freeze: 'freezes a process that answers for 2 to 5 s',
  'clock-skew': 'a new process has a clock up to 120 s ahead or behind',
  'store-throttled': 'the store throttles 10, 50 or 100 % of the calls',
  'store-down': 'the store answers 500 or hangs up',
  'store-reply-lost': 'writes are applied, their replies are lost',
  'store-slow': 'the store takes 0.4 to 1 s for each call',
  'price-edit': 'a model’s price changes',
  'bad-row': 'a row becomes invalid, and is corrected 6 s later',
  'channel-deleted': 'a channel is deleted while it answers, and restored 4 s later',
} as const;

export type UpstreamFault = keyof typeof upstreamFaults;
export type ClientFault = keyof typeof clientFaults;
export type StackFault = keyof typeof stackFaults;
export type CallFault = UpstreamFault | ClientFault;
export type FaultKind = CallFault | StackFault;

export const faultKinds = { ...upstreamFaults, ...clientFaults, ...stackFaults } as const;
export const allFaults = Object.keys(faultKinds) as FaultKind[];

export const isUpstreamFault = (kind: string): kind is UpstreamFault => kind in upstreamFaults;
export const isCallFault = (kind: string): kind is CallFault =>
  kind in upstreamFaults || kind in clientFaults;

/** Calls that occupy a process for half a minute get their own lane. */
export const longCalls: ReadonlySet<string> = new Set(['stalled-reader', 'late-answer', 'slow-reader']);

/** Faults that make tables unreachable or slow; edits of the configuration are checked between them. */
export const storeFaults: ReadonlySet<string> = new Set([
  'store-throttled',
  'store-down',
  'store-reply-lost',
  'store-slow',
]);
export const configurationEdits: ReadonlySet<string> = new Set(['price-edit', 'bad-row', 'channel-deleted']);
