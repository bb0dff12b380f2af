/**
 * One file, because Vitest gives files to workers, and each worker would start its own stack and keep it: 2 CPU seconds, and
 * 0.6 for each minute that it is idle.
 */
import { afterAll, describe } from 'vitest';
import { stopClientStack } from './client-stack.ts';

afterAll(stopClientStack);

const files = [
  ['agents', () => import('./agents.test.ts')],
  ['the AI SDK', () => import('./ai-sdk.test.ts')],
  ['background', () => import('./background.test.ts')],
  ['chat', () => import('./chat.test.ts')],
  ['embeddings', () => import('./embeddings.test.ts')],
  ['errors', () => import('./errors.test.ts')],
  ['LangChain', () => import('./langchain.test.ts')],
  ['Responses', () => import('./responses.test.ts')],
  ['Codex', () => import('./responses-codex.test.ts')],
  ['cases of stored responses', () => import('./stored-cases.test.ts')],
  ['limits of stored responses', () => import('./stored-limits.test.ts')],
  ['stored responses', () => import('./stored-responses.test.ts')],
] as const;
describe.each(files)('%s', async (_name, load) => {
  await load();
});
