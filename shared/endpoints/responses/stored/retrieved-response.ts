/** The objects that the paths of a stored response answer with. */
import type { JsonRecord } from '../../../wire/json-record.ts';

/**
 * The response with the state of its turn as a first item, for a client that goes on without the store. Answers that have
 * a seal already, because their client asked for it, stay as they are.
 */
export function withSeal(response: JsonRecord, seal: string | undefined): JsonRecord {
  const { id, output } = response;
  if (seal === undefined || !Array.isArray(output) || output.some(isSealed)) return response;
  const item = {
    id: `${String(id).replace(/^resp-/, 'rs_')}_state`,
    type: 'reasoning',
    status: 'completed',
    summary: [],
    encrypted_content: seal,
  };
  return { ...response, output: [item, ...output] };
}

const isSealed = (item: JsonRecord): boolean => typeof item['encrypted_content'] === 'string';

export const deletedResponse = (id: string): JsonRecord => ({ id, object: 'response', deleted: true });
