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

export function readSwitch(node: Node, key: string, usual = false): boolean {
  const found: unknown = node.tryGetContext(key);
  if (found === undefined || found === null) return usual;
  if (found === false || found === 'false') return false;
  if (found === true || found === 'true') return true;
  return refuse(key, found, 'true or false');
}

/** A whole number from 1 on, or its digits as the CLI passes them. */
export function readCount(node: Node, key: string, most: number): number | undefined {
  const found: unknown = node.tryGetContext(key);
  if (found === undefined || found === null) return undefined;
  const count = typeof found === 'string' && /^\d+$/.test(found) ? Number(found) : found;
  const isCount = typeof count === 'number' && Number.isInteger(count) && count >= 1 && count <= most;
  return isCount ? count : refuse(key, found, `a whole number from 1 to ${most}`);
}

/** An object, or its JSON text as the CLI passes it; undefined: neither, or no value. */
export function readObject(node: Node, key: string): object | undefined {
  const found: unknown = node.tryGetContext(key);
  try {
    const value: unknown = typeof found === 'string' ? JSON.parse(found) : found;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
