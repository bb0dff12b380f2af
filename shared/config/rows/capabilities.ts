import * as z from 'zod/mini';
import { isRecord, parseJson } from '../../wire/json.ts';
import { flag, attributeOf, plainValue } from './read-row.ts';

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

/** What a mark says, and what is wrong with it, each as `_can.name: ...`. */
export interface CapabilitiesReading {
  /** Absent: nothing is known. */
  can?: Capabilities;
  warnings: string[];
}

/**
 * Reads the mark `_can` of a row, as a map or as JSON text. Lenient, because no mark breaks a row: a field of another
 * kind is unknown, and a warning.
 */
export function readCapabilities(raw: unknown): CapabilitiesReading {
  const mark = attributeOf(raw, '_can');
  if (mark === undefined || mark === null) return { warnings: [] };
  const written = plainValue(typeof mark === 'string' ? parseJson(mark) : mark);
  if (!isRecord(written) || Array.isArray(written))
    return { warnings: ['_can: cannot be read, wanted a map of what a probe found'] };
  const read: Capabilities = {};
  const warnings: string[] = [];
  for (const [name, value] of Object.entries(written)) {
    const wanted = readField(read, name, value);
    if (wanted === 'unknown') warnings.push(`_can.${name.slice(0, 40)}: is not known here`);
    else if (wanted !== undefined) warnings.push(`_can.${name}: cannot be read, wanted ${wanted}`);
  }
  const isEmpty = Object.keys(read).every((name) => name === 'model');
  return isEmpty ? { warnings } : { can: read, warnings };
}

/** Reads one field into `read`. Otherwise returns what was wanted, or `unknown` for the name. */
function readField(read: Capabilities, name: string, value: unknown): string | undefined {
  const flagName = flags.find((each) => each === name);
  const listName = lists.find((each) => each === name);
  if (flagName !== undefined) {
    const parsed = z.safeParse(flag, value);
    if (parsed.success) read[flagName] = parsed.data;
    return parsed.success ? undefined : 'true or false';
  }
  if (listName !== undefined) {
    const isList = Array.isArray(value) && value.every((item) => typeof item === 'string');
    if (isList) read[listName] = value;
    return isList ? undefined : 'a list of texts';
  }
  if (name !== 'model') return 'unknown';
  if (typeof value === 'string') read.model = value;
  return typeof value === 'string' ? undefined : 'the name of a model';
}

/** Whether what a probe found holds for a model of the row. */
export const holdsFor = ({ model }: Capabilities, asked: string): boolean =>
  model === undefined || model === asked;
