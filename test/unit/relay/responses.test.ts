import { describe, expect, it } from 'vitest';
import { CoreRig, delta, done, finish, usage } from '../../support/core-rig.ts';
import type { Answer, RigOptions, Step } from '../../support/core-rig.ts';

const path = '/v1/responses';
const ask = { model: 'm', input: 'hi' };
const startedAt = Date.UTC(2026, 10, 21) / 1000;

async function answerOf(
  body: object,
  steps: Step[],
  options?: RigOptions,
): Promise<{ rig: CoreRig; answer: Answer }> {
  const rig = new CoreRig(options).upstream({ steps });
  return { rig, answer: await rig.post(body, { path }) };
}
async function responseOf(
  body: object,
  steps: Step[],
  options?: RigOptions,
): Promise<Record<string, unknown>> {
  return JSON.parse((await answerOf(body, steps, options)).answer.text);
}

describe('the response object', () => {
  it('has the identity of the request, its time and the time of its end', async () => {
    const response = await responseOf(ask, [delta('Hel'), 7_000, delta('lo'), finish(), usage(7, 2), done]);
    expect(response).toMatchObject({
      id: 'resp-01testrequest0000000000000',
      object: 'response',
      model: 'm',
      status: 'completed',
      created_at: startedAt,
      completed_at: startedAt + 7,
    });
  });
});
