/**
 * Leaves out channels of which a probe found that they cannot do what a call needs, and those whose row does not allow
 * what its messages name at the vendor. Must never leave out others.
 */
import type { ChatRequest } from '../../wire/chat-request.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { storedMessage, storedPath } from '../../upstreams/restricted-fields.ts';
import type { Serving } from './candidate.ts';
import { channelLimits } from './output-limit.ts';
import { lacks, type NeededCapability, type ServedModel } from './serving-channels.ts';

interface Need {
  capability: NeededCapability;
  /** What of the request needs it, as the path of a field in chat form; undefined: nothing. */
  field: (request: ChatRequest) => string | undefined;
}

const needs: Need[] = [
  {
    capability: 'tools',
    // Tools of other types run at the upstream, or are dropped.
    field: ({ tools }) =>
      tools?.some(({ type }) => type === 'function' || type === 'custom') ? 'tools' : undefined,
  },
  { capability: 'images', field: ({ messages }) => imageIn(messages) },
  {
    capability: 'json_schema',
    field: ({ response_format: format }) => (format?.type === 'json_schema' ? 'response_format' : undefined),
  },
];

/**
 * What of `serving` can do what the call needs. Throws an InvalidRequest that names the field if nothing is left. A
 * channel can do what no probe denied. `model`: the public base name.
 */
export function capableOf(
  { denied, ...serving }: ServedModel,
  { model, request }: { model: string; request: ChatRequest },
): Serving {
  let { candidates } = serving;
  for (const { capability, field } of needs) {
    const param = denied.has(capability) ? field(request) : undefined;
    if (param === undefined) continue;
    candidates = candidates.filter(({ channel }) => !lacks(channel, model, capability));
    if (candidates.length === 0)
      throw new InvalidRequest(
        'unsupported_parameter',
        param,
        `The model "${model}" does not support '${param}' here.`,
      );
  }
  const stored = storedPath(request, []);
  if (stored !== undefined) {
    candidates = candidates.filter(({ channel }) => storedPath(request, channel.params.allow) === undefined);
    if (candidates.length === 0)
      throw new InvalidRequest('unsupported_parameter', stored, storedMessage(stored));
  }
  if (candidates === serving.candidates) return serving;
  return { ...serving, candidates: Object.freeze(candidates), limits: channelLimits(candidates) };
}

function imageIn(messages: ChatRequest['messages']): string | undefined {
  for (const [i, { content }] of messages.entries()) {
    const j = Array.isArray(content) ? content.findIndex(({ type }) => type === 'image_url') : -1;
    if (j >= 0) return `messages[${i}].content[${j}]`;
  }
  return undefined;
}
