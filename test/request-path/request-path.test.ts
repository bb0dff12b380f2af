import path from 'node:path';
import { expect, it } from 'vitest';
import { runRequest } from './run-request.ts';

const root = path.join(import.meta.dirname, '../..');

it('a streamed request on the real composition enters in the warm call only what it runs', async () => {
  const { text, ordered, enteredBefore } = await runRequest(root);
  expect(text).toMatch(/data: \[DONE\]\n\n$/);
  expect(ordered.at(0)).toMatch(/^shared\/adapters\/entry\//);
  expect(enteredBefore).toEqual([]);
});
