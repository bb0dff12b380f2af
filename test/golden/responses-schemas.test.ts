import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { expectDocumented } from '../openapi/exchange.ts';
import { CoreRig, frames } from '../support/core-rig.ts';
import type { Answer, UpstreamScript } from '../support/core-rig.ts';
import {
  chatChunk,
  chatCompletion,
  errorBody,
  responseObject,
  responsesEvent,
} from '../support/wire-schemas.ts';
import { cases } from './responses/cases.ts';
import { readEvents } from './responses/read-events.ts';

const patient = { first_content_seconds: 300, idle_seconds: 300 };
const messages = [{ role: 'user', content: 'hi' }];

/** @param isOdd the body has a value of an undocumented type, which the relay ignores */
async function post(script: UpstreamScript, body: object, path: string, isOdd = false): Promise<Answer> {
  const rig = new CoreRig({ channels: [patient] }).upstream(script);
  const asked = { model: 'm', ...body };
  const answer = await rig.post(asked, { path });
  expectDocumented({ method: 'POST', path, body: isOdd ? undefined : asked, ...answer });
  return answer;
}

describe.each(Object.entries(cases))('the output for %s', (_name, one) => {
  it('has all fields of a Responses event, and no other', async () => {
    const body = { input: 'hi', ...one.request, stream: true };
    const events = readEvents((await post(one, body, '/v1/responses')).text);
    expect(z.array(responsesEvent).parse(events)).toEqual(events);
  });

  it('has all fields of a response or of an error, and no other', async () => {
    const { status, text } = await post(one, { input: 'hi', ...one.request }, '/v1/responses');
    const schema: z.ZodType = status === 200 ? responseObject : errorBody;
    expect(schema.safeParse(JSON.parse(text)).error).toBeUndefined();
  });

  it('has all fields of a chat chunk, and no other', async () => {
    const { text } = await post(one, { messages, stream: true }, '/v1/chat/completions');
    const [last, ...chunks] = frames(text).toReversed();
    expect(last).toBe('[DONE]');
    expect(z.array(chatChunk).parse(chunks)).toEqual(chunks);
  });

  it('has all fields of a chat completion or of an error, and no other', async () => {
    const { status, text } = await post(one, { messages }, '/v1/chat/completions');
    const schema: z.ZodType = status === 200 ? chatCompletion : errorBody;
    expect(schema.safeParse(JSON.parse(text)).error).toBeUndefined();
  });
});

describe.each(Object.entries(cases))('the Messages output for %s', (_name, one) => {
  it('matches docs/openapi.json, streamed or not', async () => {
    const body = { max_tokens: 50, thinking: { type: 'adaptive' }, messages };
    const streamed = await post(one, { ...body, stream: true }, '/v1/messages');
    expect(streamed.text).toMatch(one.fails ? /^event: error$/m : /^event: message_stop$/m);
    const { status } = await post(one, body, '/v1/messages');
    expect(status === 200).toBe(one.fails !== true);
  });
});

describe('the request fields in a response', () => {
  it('are repeated as sent, with missing tool fields filled in, and without tools that were not sent', async () => {
    const body = {
      input: 'hi',
      instructions: 'Be brief.',
      metadata: { a: 'b' },
      temperature: 0.5,
      top_p: 0.25,
      max_output_tokens: 9,
      parallel_tool_calls: false,
      tool_choice: { type: 'function', name: 'look' },
      tools: [{ type: 'function', name: 'look' }, { type: 'web_search' }],
      text: { format: { type: 'json_object' }, verbosity: 'low' },
      reasoning: { effort: 'low', summary: 'auto' },
      top_logprobs: 2,
      prompt_cache_key: 'k',
      safety_identifier: 's',
    };
    const { text } = await post(cases['text'] ?? {}, body, '/v1/responses');
    const { input: _input, tools, ...repeated } = body;
    expect(responseObject.parse(JSON.parse(text))).toMatchObject({
      ...repeated,
      tools: [{ ...tools[0], description: null, parameters: null, strict: null }],
    });
  });

  it.each([
    ['metadata', 'text'],
    ['metadata', ['a']],
    ['prompt_cache_key', 5],
    ['safety_identifier', {}],
    ['tool_choice', 7],
    ['tools', [{}]],
  ])('match the schema even with an invalid %s (%j)', async (field, value) => {
    const { status, text } = await post(
      cases['text'] ?? {},
      { input: 'hi', [field]: value },
      '/v1/responses',
      true,
    );
    expect(status).toBe(200);
    responseObject.parse(JSON.parse(text));
  });
});
