/** Reads the context values `originSecrets` and `sealKeys`: numbers of generated secrets, oldest first. */
import type { Node } from 'constructs';
import { refuse } from './context.ts';

export const readOriginSecrets = (node: Node): number[] => readNumbers(node, 'originSecrets', 3);

/** A quarterly rotation keeps two keys for 90 days; there is room for hurried ones. */
export function readSealKeys(node: Node): number[] {
  const numbers = readNumbers(node, 'sealKeys', 10);
  const ascending = numbers.every((number, index) => number > (numbers[index - 1] ?? 0));
  return ascending ? numbers : refuse('sealKeys', numbers, 'ascending numbers, such as [1,2]');
}

function readNumbers(node: Node, key: string, most: number): number[] {
  const found: unknown = node.tryGetContext(key) ?? [1];
  const list: unknown = typeof found === 'string' ? parseJson(found) : found;
  if (isNumberList(list) && list.length >= 1 && list.length <= most) return list;
  const wanted = `a list of 1 to ${most} different whole numbers, the newest last, such as [1] or [1,2]`;
  return refuse(key, found, wanted);
}

const isNumberList = (list: unknown): list is number[] =>
  Array.isArray(list) &&
  new Set(list).size === list.length &&
  list.every((item) => Number.isInteger(item) && item >= 1 && item <= 9999);

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
