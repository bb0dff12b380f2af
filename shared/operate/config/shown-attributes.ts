/** Which values of rows with a problem may be shown: people paste keys into wrong attributes. */
import { looksSecret, neverQuoted } from '../../wire/issue-sentence.ts';

/** An attribute that is not known may be a misspelt one, such as `api_key`. */
const soundsSecret = /secret|key|token|pass|auth|header|credential/i;

/** Of addresses, a query and what stands before `@`; else what is long and has no blank. */
const mayHoldSecret = /\?|:\/\/[^/"]*@|[\w+=~-]{20,}/;
/** Names of models are long. */
const namesModels = new Set(['models', 'mapper']);

/** Whether an attribute of a row with a problem may be shown: a secret may stand in a wrong place. */
export function mayBeShown(name: string, value: unknown): boolean {
  if (neverQuoted.has(name) || soundsSecret.test(name)) return false;
  const text = JSON.stringify(value) ?? '';
  return !looksSecret.test(text) && (namesModels.has(name) || !mayHoldSecret.test(text));
}
