import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { CoreRig } from '../support/core-rig.ts';
import type { Answer } from '../support/core-rig.ts';
import { cases, type ResponsesCase } from './responses/cases.ts';
import { readByGrammar } from './responses/grammar.ts';
import { readEvents, readFrames } from './responses/read-events.ts';

/**
 * Upstream answers with every event that a Responses client receives for them. `vitest -u` writes the `.jsonl` files,
 * one event per line; a person reviews them.
 */
const folder = path.join(import.meta.dirname, 'responses');
const patient = { first_content_seconds: 300, idle_seconds: 300 };

function ask({ request, steps }: ResponsesCase, stream: boolean): Promise<Answer> {
  const rig = new CoreRig({ channels: [patient] }).upstream({ steps });
  return rig.post({ model: 'm', input: 'hi', ...request, stream }, { path: '/v1/responses' });
}

describe.each(Object.entries(cases))('%s', (name, one) => {
  it('becomes these events', async () => {
    const { status, headers, text } = await ask(one, true);
    expect({ status, type: headers['content-type'] }).toEqual({
      status: 200,
      type: 'text/event-stream; charset=utf-8',
    });
    const lines = readFrames(text).map((frame) => `${JSON.stringify(frame)}\n`);
    await expect(lines.join('')).toMatchFileSnapshot(path.join(folder, `${name}.jsonl`));
  });

  it('follows the grammar, and its deltas add up to the answer without streaming', async () => {
    const streamed = readByGrammar(readEvents((await ask(one, true)).text));
    const whole = await ask(one, false);
    expect(whole.status).toBe(one.fails ? 502 : 200);
    expect(one.fails ? streamed.status : JSON.parse(whole.text)).toEqual(one.fails ? 'failed' : streamed);
  });
});
