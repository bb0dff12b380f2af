import { expect } from 'vitest';
import type { Answer, CoreRig, UpstreamScript } from '../../../support/core-rig.ts';
import { calling } from '../../../support/stateful-dialects.ts';

/** Long enough to be shown to clients as it is. */
export const callId = 'call_of_the_vendor_0001';
export const mark = { signature: 'abc' };

export const withState: UpstreamScript = { steps: calling(callId, mark) };
export const plain: UpstreamScript = { steps: calling(callId) };

const tools = [{ type: 'function', function: { name: 'look' } }];
const question = { role: 'user', content: 'hi' };

export const turn1 = { model: 'm', messages: [question], tools, stream: true };

/** The assistant turn as a client sends it back: standard fields only. */
export const calledTurn = (id = callId) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }],
});

export const turn2 = (assistant: object = calledTurn(), id = callId) => ({
  ...turn1,
  messages: [question, assistant, { role: 'tool', tool_call_id: id, content: 'seen' }],
});

/** The states sent with the last request. */
export const statesSent = (rig: CoreRig): unknown => rig.sent.at(-1)?.json['x_states'];

export const kept = [{ opaque: mark }, { call: 0 }];

export async function startLoop(rig: CoreRig): Promise<Answer> {
  const answer = await rig.upstream(withState).post(turn1);
  expect(answer.status).toBe(200);
  expect(answer.text).toContain(callId);
  return answer;
}
