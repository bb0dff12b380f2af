import type { CanonicalCall, ChatContentPart, ChatMessage } from '../../wire/canonical-call.ts';
import type { MediaEstimator } from './media-tokens.ts';
import type { Inflate } from './pdf-size.ts';
import { TextShape, windowTokens } from './text-tokens.ts';

export type EstimatedCall = Pick<CanonicalCall, 'request' | 'unknown' | 'items'>;

/** Estimates of a request's input, in whole tokens. */
export interface InputEstimate {
  /** For the reservation: no tokenizer and no vendor's overhead exceeds it by more than 5 %. */
  above: number;
  /** Charged when the upstream reports no count. */
  unbiased: number;
  /** A reported count far below it is too small. */
  below: number;
  /** The path of the first content part whose size nobody knows, such as `messages[0].content[1]`. */
  unknownPart?: string | undefined;
}

/** Tokens beside the text, from above and as most vendors count them. */
interface Overhead {
  above: number;
  unbiased: number;
}

const perRequest: Overhead = { above: 12, unbiased: 0 };
/** Role and separators. Sources: OpenAI's token counting guide; chat templates of open models. */
const perMessage: Overhead = { above: 8, unbiased: 3 };
const perTool: Overhead = { above: 24, unbiased: 8 };
/** The system prompt that vendors add for tools: Anthropic's page on tool use has 264 to 530 tokens. */
const perToolUse: Overhead = { above: 640, unbiased: 0 };
/** Text fields below this length are covered by `perMessage`. */
const longText = 100;

/** Whether a request has content beside text, for which `MediaEstimator` is loaded. */
export const hasMedia = ({ messages }: EstimatedCall['request']): boolean =>
  messages.some(({ content }) => typeof content === 'object' && content?.some(({ type }) => type !== 'text'));

/** By what the rule of a model says a picture has. */
export type MediaReader = (imageTokens: number | undefined) => MediaEstimator;

/** Loads what estimates pictures, files and sound. Undefined: the request has text alone. */
export async function mediaReaderFor(
  request: EstimatedCall['request'],
  inflate: Inflate,
): Promise<MediaReader | undefined> {
  if (!hasMedia(request)) return undefined;
  const { mediaReader } = await import('./media-tokens.ts');
  return mediaReader(inflate);
}

/** `media`: for requests with content beside text. */
export function estimateInput(
  { request, unknown, items }: EstimatedCall,
  media?: MediaEstimator,
): InputEstimate {
  const { messages, ...fields } = request;
  const text = new TextShape();
  const beside = { ...perRequest };
  let mediaAbove = 0;
  let unknownPart: string | undefined;
  // Only some upstreams are sent them, so no count is too small for lack of them.
  const carried = new TextShape();
  for (const list of items?.after.values() ?? []) addStructures(carried, list);
  for (const item of items?.instead.values() ?? []) addStructures(carried, [item]);
  const count = ({ above, unbiased }: Overhead): void => {
    beside.above += above;
    beside.unbiased += unbiased;
  };
  addStructures(text, fields);
  addStructures(text, unknown);
  addLongTexts(text, unknown);
  if (request.tools && request.tools.length > 0) count(perToolUse);
  for (const _ of request.tools ?? []) count(perTool);
  for (const [at, message] of messages.entries()) {
    count(perMessage);
    addFields(text, message);
    for (const [index, part] of partsOf(message).entries()) {
      if (part.type === 'text') {
        text.cut().add(part.text ?? '');
        continue;
      }
      const tokens = media?.(part);
      if (!tokens) unknownPart ??= `messages[${at}].content[${index}]`;
      mediaAbove += tokens?.above ?? 0;
      beside.unbiased += tokens?.unbiased ?? 0;
    }
  }
  beside.above += Math.min(windowTokens, mediaAbove);
  return {
    above: Math.ceil(text.tokensFromAbove + carried.tokensFromAbove + beside.above),
    unbiased: Math.ceil(text.tokens + beside.unbiased),
    below: Math.floor(text.tokensFromBelow),
    unknownPart,
  };
}

function partsOf({ content }: ChatMessage): ChatContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content ?? [];
}

function addFields(shape: TextShape, message: ChatMessage): void {
  const fields = { ...message, content: undefined };
  addStructures(shape, fields);
  addLongTexts(shape, fields);
}

/** Structured fields, such as tools and schemas. All count, because any may become part of the prompt. */
function addStructures(shape: TextShape, fields: object): void {
  for (const value of Object.values(fields))
    if (typeof value === 'object' && value !== null) shape.cut().add(JSON.stringify(value));
}

/** Long text fields, such as `reasoning_content`. */
function addLongTexts(shape: TextShape, fields: object): void {
  for (const value of Object.values(fields))
    if (typeof value === 'string' && value.length > longText) shape.cut().add(value);
}
