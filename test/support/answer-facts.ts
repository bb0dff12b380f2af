import type { AnswerFacts } from '../../shared/endpoints/endpoint.ts';

/** What renderers may ask, where a test does not care. */
export const answerFacts = (more: Partial<AnswerFacts> = {}): AnswerFacts => ({
  now: () => 9,
  usage: () => ({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }),
  sent: () => ({ dropped: [] }),
  sealedState: () => undefined,
  opaqueParts: () => 0,
  ...more,
});
