/** The texts in a whole output item, as its last event and the list of the whole response hold them. */
import { isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import type { AnswerItem, TextKind } from './output-items.ts';

export interface WholeText {
  kind: TextKind;
  index: number;
  text: string;
  /** The part that holds it, for its annotations and probabilities. */
  part: JsonRecord;
}

const kinds: Partial<Record<string, TextKind>> = {
  output_text: 'text',
  text: 'text',
  refusal: 'refusal',
  summary_text: 'summary',
  reasoning_text: 'reasoning',
};

export function wholesOf(item: JsonRecord): WholeText[] {
  if (item['type'] === 'function_call')
    return [{ kind: 'call', index: 0, text: argumentsText(item['arguments']), part: item }];
  if (item['type'] === 'custom_tool_call')
    return [{ kind: 'call', index: 0, text: argumentsText(item['input']), part: item }];
  return [item['summary'], item['content']].flatMap((list) =>
    Array.isArray(list) ? list.flatMap((part: unknown, index) => wholeOfPart(part, index)) : [],
  );
}

/** The text of one part; none for parts of other types. */
export function wholeOfPart(part: unknown, index: number): WholeText[] {
  if (!isRecord(part) || typeof part['type'] !== 'string') return [];
  const kind = kinds[part['type']];
  const text = kind === 'refusal' ? part['refusal'] : part['text'];
  return kind && typeof text === 'string' ? [{ kind, index, text, part }] : [];
}

/** Whether what was read of an item is the beginning of a whole one. */
export function agrees(item: AnswerItem, source: JsonRecord): boolean {
  const wholes = wholesOf(source);
  return item.parts.every(
    ({ kind, text }) =>
      text === '' || wholes.some((each) => each.kind === kind && each.text.startsWith(text)),
  );
}

/** Arguments as text; some servers send the object itself. */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}
