import { hold } from './seen-events.ts';
import { inputOf } from './slow-answer.ts';
import type { Stage } from './stage.ts';

/** Another account tries every path of a response, and to continue it. */
export async function strangerSees(stage: Stage, id: string): Promise<void> {
  const body = { model: 'm', input: inputOf(stage.seed, 1, 0), previous_response_id: id };
  const tried: [number, string, string, object?][] = [
    [404, 'GET', `/${id}`],
    [404, 'GET', `/${id}?stream=true`],
    [404, 'GET', `/${id}/input_items`],
    [404, 'POST', `/${id}/cancel`],
    [404, 'DELETE', `/${id}`],
    // The same as for an unknown id.
    [400, 'POST', '', body],
  ];
  for (const [refused, method, path, sent] of tried) {
    const asked = { method, path, key: stage.strangersKey, ...(sent && { body: sent }) };
    const { status, text } = await stage.own(asked);
    hold(status === refused, `a stranger got ${status} for ${method} ${path}: ${text}`);
  }
}
