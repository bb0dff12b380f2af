/** A tool as a Responses client declared it. The upstream knows it by a flat function name. */
export interface DeclaredTool {
  kind: 'function' | 'custom';
  name: string;
  namespace: string | undefined;
}

const nameLengthMax = 64;

/**
 * The function name of a tool for a chat upstream: `namespace__name`, or `name` if there is no namespace,
 * reduced to the characters and the length that upstreams accept. The same tool gets the same name in every
 * turn of a conversation.
 */
export function flatToolName(name: string, namespace: unknown): string {
  const whole = typeof namespace === 'string' && namespace !== '' ? `${namespace}__${name}` : name;
  const plain = whole.replaceAll(/[^A-Za-z0-9_-]/g, '_');
  if (plain === whole && whole.length <= nameLengthMax) return whole;
  const mark = `_${fingerprint(whole)}`;
  return plain.slice(0, nameLengthMax - mark.length) + mark;
}

/** FNV-1a, 32 bits, in base 36. Keeps names distinct that would be equal after shortening. */
function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(36);
}
