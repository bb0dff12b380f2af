/** The option `canary`: a scheduled call with a key of its own. */
import type { Node } from 'constructs';
import { readObject, refuse } from './context.ts';

const option = 'canary';
const wanted =
  'an object of model, key (ssm:/relay/<stack>/<name> or secretsmanager:<stack>/<name>) and, if wanted, everyMinutes (1 to 60)';
const keyPattern = /^(ssm:\/relay\/[\w.-]+(\/[\w.-]+)+|secretsmanager:[\w+=.@-]+(\/[\w+=.@-]+)+)$/;
const names = new Set(['model', 'key', 'everyMinutes']);

export interface CanaryOption {
  model: string;
  key: string;
  everyMinutes?: number;
}

/** Reads an object, or its JSON text from the CLI. */
export function readCanary(node: Node): CanaryOption | undefined {
  const found: unknown = node.tryGetContext(option) ?? undefined;
  if (found === undefined) return undefined;
  const value = readObject(node, option);
  return isCanary(value) ? value : refuse(option, found, wanted);
}

function isCanary(value: object | undefined): value is CanaryOption {
  if (value === undefined) return false;
  const { model, key, everyMinutes = 5 } = value as Record<string, unknown>;
  const minutes = typeof everyMinutes === 'number' && Number.isInteger(everyMinutes) ? everyMinutes : 0;
  return (
    Object.keys(value).every((name) => names.has(name)) &&
    typeof model === 'string' &&
    model !== '' &&
    typeof key === 'string' &&
    keyPattern.test(key) &&
    minutes >= 1 &&
    minutes <= 60
  );
}
