import { parseJson } from '../../wire/json-record.ts';
import { attributeOf, plainValue } from './read-row.ts';

/** What a probe found that a channel can do. An absent field is unknown. */
export interface Capabilities {
  /** The public name of the model that was asked. Absent: what was found holds for all models of the row. */
  model?: string;
  tools?: boolean;
  parallel_tools?: boolean;
  json_schema?: boolean;
  images?: boolean;
  usage_streaming?: boolean;
  system_anywhere?: boolean;
  efforts?: string[];
  dialects?: string[];
}

const flags = [
  'tools',
  'parallel_tools',
  'json_schema',
  'images',
  'usage_streaming',
  'system_anywhere',
] as const;
const lists = ['efforts', 'dialects'] as const;

/**
 * Reads the mark `_can` of a row, as a map or as JSON text. Lenient, because no mark breaks a row: a field of another
 * kind is unknown. Undefined: nothing is known.
 */
export function readCapabilities(raw: unknown): Capabilities | undefined {
  const mark = attributeOf(raw, '_can');
  const written = plainValue(typeof mark === 'string' ? parseJson(mark) : mark);
  const read: Capabilities = {};
  for (const name of flags) {
    const value = attributeOf(written, name);
    if (typeof value === 'boolean') read[name] = value;
  }
  for (const name of lists) {
    const value = attributeOf(written, name);
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) read[name] = value;
  }
  if (Object.keys(read).length === 0) return undefined;
  const model = attributeOf(written, 'model');
  return typeof model === 'string' ? { model, ...read } : read;
}

/** Whether what a probe found holds for a model of the row. */
export const holdsFor = ({ model }: Capabilities, asked: string): boolean =>
  model === undefined || model === asked;
