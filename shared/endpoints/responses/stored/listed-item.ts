/** An item as lists show it: with all that OpenAI's schema requires, also where its client left it out. */
import { isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import { inputImages, sealedReasoning } from './included.ts';

/** What a client may leave out of an item or part that it sends, by its type. */
const required: Record<string, JsonRecord> = {
  function_call: { status: 'completed' },
  function_call_output: { status: 'completed' },
  custom_tool_call: { status: 'completed' },
  custom_tool_call_output: { status: 'completed' },
  reasoning: { summary: [] },
  input_image: { detail: 'auto' },
  output_text: { annotations: [], logprobs: [] },
};

/** Sealed states and images of messages, which are long, only where they are asked for. */
export function listedItem(item: JsonRecord, included: ReadonlySet<string>): JsonRecord {
  const { encrypted_content: seal, content, output, ...rest } = item;
  const shown = included.has(inputImages) ? completedPart : withoutImage;
  return {
    ...completed(rest),
    ...(content !== undefined && { content: Array.isArray(content) ? content.map(shown) : content }),
    ...(output !== undefined && { output: Array.isArray(output) ? output.map(completedPart) : output }),
    ...(seal !== undefined && included.has(sealedReasoning) && { encrypted_content: seal }),
  };
}

function completed(one: JsonRecord): JsonRecord {
  const usual = Object.entries(required[String(one['type'])] ?? {});
  return { ...one, ...Object.fromEntries(usual.map(([name, value]) => [name, one[name] ?? value])) };
}

const completedPart = (part: unknown): unknown => (isRecord(part) ? completed(part) : part);

const withoutImage = (part: unknown): unknown =>
  isRecord(part) && part['type'] === 'input_image'
    ? { ...completed(part), image_url: null }
    : completedPart(part);
