import { type ReaderContext, type RequestSettings } from '../../shared/upstreams/dialect.ts';
import { CallIds } from '../../shared/upstreams/call-ids.ts';
import { findModelRules } from '../../shared/upstreams/model-rules.ts';
import { defaultQuirks } from '../../shared/upstreams/quirks.ts';
import { type CanonicalCall, splitKnown, type ChatRequest } from '../../shared/wire/canonical-call.ts';
import type { AnswerIdentity } from '../../shared/wire/chat-response.ts';

/** Default inputs of dialects, for tests that do not depend on them. */

export const callIds = new CallIds({ channel: 'c', requestId: 'r1' });
export const answerIdentity: AnswerIdentity = { requestId: 'r1', created: 5, model: 'public-name' };

export const settingsWith = (more: Partial<RequestSettings> = {}): RequestSettings => ({
  model: 'up',
  stream: true,
  includeUsage: true,
  set: {},
  drop: [],
  allow: [],
  limitField: 'max_tokens',
  outputTokensDefault: 16_384,
  quirks: { ...defaultQuirks, ...findModelRules(more.model ?? '', 'max_tokens') },
  states: new Map(),
  callIds,
  omissions: new Set(),
  ...more,
});

export const readerContext = (more: Partial<ReaderContext> = {}): ReaderContext => ({
  identity: answerIdentity,
  sent: { body: {}, dropped: [], wrappedTools: new Set() },
  callIds,
  quirks: defaultQuirks,
  ...more,
});

/** A call as a chat client sends it. */
export const chatCall = (request: ChatRequest): CanonicalCall => ({ form: 'chat', ...splitKnown(request) });
