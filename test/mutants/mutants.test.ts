import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { seeds } from '../rollout/seeded-builds.ts';
import { mutants } from './mutants.ts';

const root = path.join(import.meta.dirname, '../..');

it.each(Object.entries(mutants))('the mutant "%s" still fits', (_, { file, find, replace, noticed }) => {
  expect(readFileSync(path.join(root, file), 'utf8').split(find)).toHaveLength(2);
  expect(replace).not.toBe(find);
  expect(readFileSync(path.join(root, noticed), 'utf8')).toContain('expect');
});

it.each(Object.entries(seeds))('the change of the bad version "%s" still fits', (_, { file, find }) => {
  expect(readFileSync(path.join(root, file), 'utf8').split(find)).toHaveLength(2);
});
