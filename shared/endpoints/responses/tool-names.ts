import { fingerprint } from '../../wire/fingerprint.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { calledNameMax } from '../../wire/name-patterns.ts';

/**
 * The name of a tool for an upstream: `namespace__name`, or `name` if there is no namespace, reduced to the
 * characters and the length that upstreams accept. The same tool gets the same name in every turn of a conversation.
 */
export function flatToolName(name: string, namespace: unknown): string {
  const whole = typeof namespace === 'string' && namespace !== '' ? `${namespace}__${name}` : name;
  const plain = whole.replaceAll(/[^A-Za-z0-9_-]/g, '_');
  if (plain === whole && whole.length <= calledNameMax) return whole;
  const mark = `_${fingerprint(whole)}`;
  return plain.slice(0, calledNameMax - mark.length) + mark;
}

/** Refuses a longer name than OpenAI accepts. `param`: the path of the object with the name. */
export function checkNameLength(source: { name?: unknown; namespace?: unknown }, param: string): void {
  for (const field of ['name', 'namespace'] as const) {
    const value = source[field];
    if (typeof value !== 'string' || value.length <= calledNameMax) continue;
    throw new InvalidRequest(
      'string_above_max_length',
      `${param}.${field}`,
      `'${param}.${field}' has ${value.length} characters; at most ${calledNameMax} are accepted.`,
    );
  }
}
