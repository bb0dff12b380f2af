import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { runRequest, type EnteredFiles } from './run-request.ts';

const root = path.join(import.meta.dirname, '../..');
const page = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');
const section = page.split('\n## ').find((part) => part.startsWith('Request path\n')) ?? '';
const listed = [...section.matchAll(/^\d+\. `([^`]+)`/gm)].map((match) => String(match[1]));

let entered: EnteredFiles;
beforeAll(async () => {
  entered = await runRequest(root);
});

describe('one streamed request on the real composition', () => {
  it('enters the files of the section "Request path", in its order', () => {
    expect(entered.text).toMatch(/data: \[DONE\]\n\n$/);
    expect(entered.ordered).toEqual(listed);
    expect(entered.enteredBefore).toEqual([]);
  });
});
