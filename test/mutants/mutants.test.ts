import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { parseAst } from 'vitest/node';
import { seeds } from '../rollout/seeded-builds.ts';
import { isNode, nameOf } from '../tidy/syntax.ts';
import { mutants } from './mutants.ts';

const root = path.join(import.meta.dirname, '../..');

it.each(Object.entries(mutants))('the mutant "%s" still fits', (_, { file, find, replace, noticed }) => {
  expect(readFileSync(path.join(root, file), 'utf8').split(find)).toHaveLength(2);
  expect(replace).not.toBe(find);
  expect(readFileSync(path.join(root, noticed), 'utf8')).toContain('expect');
});

/** `it` of `it.each(cases)(title, body)`. */
const rootName = (node: unknown): string | undefined =>
  isNode(node) ? (nameOf(node) ?? rootName(node['callee'] ?? node['object'] ?? node['tag'])) : undefined;

/** The texts in a syntax tree outside the bodies of tests: titles and the labels of cases. An expression ends a text. */
function titlesIn(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(titlesIn);
  if (!isNode(node)) return [];
  if (node.type === 'Literal') return typeof node['value'] === 'string' ? [node['value']] : [];
  if (node.type === 'TemplateElement') return [(node['value'] as { cooked: string }).cooked];
  const { callee } = node;
  const isTest = node.type === 'CallExpression' && /^(it|test)$/.test(rootName(callee) ?? '');
  if (isTest && isNode(callee) && callee['property'] === undefined)
    return [callee, (node['arguments'] as unknown[])[0]].flatMap(titlesIn);
  return Object.values(node).flatMap(titlesIn);
}

it.each(Object.entries(mutants))(
  'the test that notices the mutant "%s" has the expected title',
  (_, { noticed, by }) => {
    const titles = titlesIn(parseAst(readFileSync(path.join(root, noticed), 'utf8'), { lang: 'ts' }));
    expect(titles.filter((title) => by.test(title))).not.toEqual([]);
  },
);

it.each(Object.entries(seeds))('the change of the bad version "%s" still fits', (_, { file, find }) => {
  expect(readFileSync(path.join(root, file), 'utf8').split(find)).toHaveLength(2);
});
