import { hold } from './seen-events.ts';
import { inputOf } from './slow-answer.ts';
import type { Stage } from './stage.ts';

/** Another account tries every path of a response, and to go on from it. */
export async function strangerSees(stage: Stage, id: string): Promise<void> {
  const body = { model: 'm', input: inputOf(stage.seed, 1, 0), previous_response_id: id };
  const tried: [string, string, object?][] = [
    ['GET', `/${id}`],
    ['GET', `/${id}?stream=true`],
    ['GET', `/${id}/input_items`],
    ['POST', `/${id}/cancel`],
    ['DELETE', `/${id}`],
    ['POST', '', body],
  ];
  for (const [method, path, sent] of tried) {
    const asked = { method, path, key: stage.strangersKey, ...(sent && { body: sent }) };
    const { status, text } = await stage.own(asked);
    hold(status === 404, `a stranger got ${status} for ${method} ${path}: ${text}`);
  }
}
