/**
 * Reads one value of the CDK context. Every error about an invalid value has the form: key, found, wanted.
 */
import type { Node } from 'constructs';

export function refuse(key: string, found: unknown, wanted: string): never {
  throw new Error(`context ${key}: found ${JSON.stringify(found)}, wanted ${wanted}`);
}

export interface TextRule {
  pattern: RegExp;
  /** The pattern in words. */
  wanted: string;
}

export function readText(node: Node, key: string, { pattern, wanted }: TextRule): string | undefined {
  const found: unknown = node.tryGetContext(key);
  if (found === undefined || found === null) return undefined;
  if (typeof found !== 'string' || !pattern.test(found)) refuse(key, found, `${wanted} (${pattern.source})`);
  return found;
}

export function readSwitch(node: Node, key: string): boolean {
  const found: unknown = node.tryGetContext(key);
  if (found === undefined || found === null || found === false || found === 'false') return false;
  if (found === true || found === 'true') return true;
  return refuse(key, found, 'true or false');
}
