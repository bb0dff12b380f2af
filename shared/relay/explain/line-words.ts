/** The words that a story may have: names of rows, cut and without odd characters, and codes that are known. */
import { vendorWord } from '../../upstreams/errors/vendor-words.ts';
import { isRefusalCode, type Refusal } from '../http/refusal.ts';

export const nameMax = 48;
export const codeMax = 40;
const namesMax = 24;

/** One character is one byte: all others become a question mark. */
export const name = (text: string | undefined, lengthMax = nameMax): string | undefined =>
  text?.slice(0, lengthMax).replaceAll(/[^\w .:/@+#-]/g, '?');

/** The word of an error, if it is one of the relay's or of those that vendors publish. */
export function codeOf({ status, body }: Refusal): string {
  const { code } = body.error;
  if (isRefusalCode(code) || ownCodes.has(code)) return code;
  const word = vendorWord({ code });
  return word && word !== 'other' ? word : status < 500 ? 'invalid_request' : 'other';
}

/** Of what the relay itself finds wrong with a request. */
const ownCodes: ReadonlySet<string> = new Set([
  'invalid_type',
  'invalid_value',
  'missing_required_parameter',
  'unsupported_parameter',
  'unsupported_content',
  'invalid_idempotency_key',
]);

export function namesOf(fields: readonly string[]): string[] | undefined {
  const names = [...new Set(fields)].filter((field) => /^[\w.[\]-]{1,32}$/.test(field)).slice(0, namesMax);
  return names.length > 0 ? names : undefined;
}
