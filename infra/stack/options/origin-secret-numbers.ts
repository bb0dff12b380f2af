/** Reads the context value `originSecrets`: numbers of the secrets that CloudFront sends to the functions. */
import type { Node } from 'constructs';
import { refuse } from './context.ts';

export function readOriginSecrets(node: Node): number[] {
  const found: unknown = node.tryGetContext('originSecrets') ?? [1];
  const list: unknown = typeof found === 'string' ? parseJson(found) : found;
  if (isNumberList(list) && list.length >= 1 && list.length <= 3) return list;
  const wanted = 'a list of 1 to 3 different whole numbers, the newest last, such as [1] or [1,2]';
  return refuse('originSecrets', found, wanted);
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
