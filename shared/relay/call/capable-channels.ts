/** Leaves out channels of which a probe found that they cannot do what a call needs. Must never leave out others. */
import { holdsFor, type Capabilities } from '../../config/rows/capabilities.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';

interface Need {
  capability: keyof Pick<Capabilities, 'tools' | 'images' | 'json_schema'>;
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
 * Throws an InvalidRequest that names the field if no channel is left. A channel can do what no probe denied.
 * `model`: the public base name.
 */
export function capableChannels(
  channels: readonly [ChannelRow, ...ChannelRow[]],
  { model, request }: { model: string; request: ChatRequest },
): [ChannelRow, ...ChannelRow[]] {
  let left: [ChannelRow, ...ChannelRow[]] = [...channels];
  for (const { capability, field } of needs) {
    const param = field(request);
    if (param === undefined) continue;
    const [first, ...rest] = left.filter(
      ({ can }) => !can || !holdsFor(can, model) || can[capability] !== false,
    );
    if (!first)
      throw new InvalidRequest(
        'unsupported_parameter',
        param,
        `The model "${model}" does not support '${param}' here.`,
      );
    left = [first, ...rest];
  }
  return left;
}

function imageIn(messages: ChatRequest['messages']): string | undefined {
  for (const [i, { content }] of messages.entries()) {
    const j = Array.isArray(content) ? content.findIndex(({ type }) => type === 'image_url') : -1;
    if (j >= 0) return `messages[${i}].content[${j}]`;
  }
  return undefined;
}
