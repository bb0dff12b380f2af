import type { AnswerFacts } from '../../shared/endpoints/endpoint.ts';

/** Default facts for renderers, for tests that do not depend on them. */
export const answerFacts = (more: Partial<AnswerFacts> = {}): AnswerFacts => ({
  now: () => 9,
  usage: () => ({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }),
  sent: () => ({ dropped: [] }),
  sealedState: () => undefined,
  opaqueParts: () => 0,
  ...more,
});
