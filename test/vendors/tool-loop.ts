import type OpenAI from 'openai';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import type { Response, ResponseInputItem } from 'openai/resources/responses/responses';

/** A complete conversation with tools, as an agent runs it. */
export interface ToolLoop {
  /** Number of turns that called tools. */
  turns: number;
  /** The calls of all turns, in order. */
  calls: { id: string; name: string; arguments: unknown }[];
  /** The text of the last turn. */
  text: string;
  usage: unknown;
}

export interface LoopTask {
  client: OpenAI;
  model: string;
  said: string;
  stream: boolean;
  /** Responses: the client keeps encrypted reasoning. */
  include?: boolean | undefined;
  /** Responses: the relay stores the conversation, and each request sends only what is new. */
  chained?: boolean | undefined;
}

const turnsMax = 24;
const parameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const system = 'Be brief. '.repeat(40);
const resultOf = (callIndex: number): string => JSON.stringify({ celsius: 20 + callIndex });

export async function chatLoop({ client, model, said, stream }: LoopTask): Promise<ToolLoop> {
  const messages: ChatCompletionMessageParam[] = [
    { role: 'system', content: system },
    { role: 'user', content: said },
  ];
  const loop: ToolLoop = { turns: 0, calls: [], text: '', usage: undefined };
  const tools = [
    {
      type: 'function' as const,
      function: { name: 'weather', description: 'Weather of a city', parameters },
    },
  ];
  for (let turn = 0; turn < turnsMax; turn += 1) {
    const request = { model, messages, tools };
    const completion = stream
      ? await client.chat.completions.stream({ ...request, stream: true }).finalChatCompletion()
      : await client.chat.completions.create(request);
    const message = completion.choices[0]?.message;
    if (!message) throw new Error('no choice');
    loop.usage = completion.usage;
    const calls = message.tool_calls ?? [];
    // Agents send back only the standard fields.
    const { content } = message;
    messages.push({
      role: 'assistant',
      content,
      ...(calls.length > 0 && {
        tool_calls: calls.map((call) => {
          if (call.type !== 'function') throw new Error('a custom call');
          const { name, arguments: text } = call.function;
          return { id: call.id, type: 'function' as const, function: { name, arguments: text } };
        }),
      }),
    });
    if (calls.length === 0) return { ...loop, text: content ?? '' };
    loop.turns += 1;
    for (const call of calls) {
      if (call.type !== 'function') continue;
      messages.push({ role: 'tool', tool_call_id: call.id, content: resultOf(loop.calls.length) });
      loop.calls.push({
        id: call.id,
        name: call.function.name,
        arguments: JSON.parse(call.function.arguments),
      });
    }
  }
  throw new Error('the loop does not end');
}

export async function responsesLoop(task: LoopTask): Promise<ToolLoop> {
  const { client, model, said, stream, include, chained } = task;
  const input: ResponseInputItem[] = [{ role: 'user', content: said }];
  const loop: ToolLoop = { turns: 0, calls: [], text: '', usage: undefined };
  let previous: string | null = null;
  const tools = [
    {
      type: 'function' as const,
      name: 'weather',
      description: 'Weather of a city',
      parameters,
      strict: true,
    },
  ];
  for (let turn = 0; turn < turnsMax; turn += 1) {
    const request = {
      model,
      instructions: system,
      input: [...input],
      tools,
      ...(chained ? { previous_response_id: previous } : { store: false }),
      ...(include && { include: ['reasoning.encrypted_content' as const] }),
    };
    const response: Response = stream
      ? await client.responses.stream({ ...request, stream: true }).finalResponse()
      : await client.responses.create(request);
    loop.usage = response.usage;
    previous = response.id;
    if (chained) input.splice(0);
    else input.push(...(response.output as ResponseInputItem[]));
    const calls = response.output.filter((item) => item.type === 'function_call');
    if (calls.length === 0) return { ...loop, text: response.output_text };
    loop.turns += 1;
    for (const call of calls) {
      input.push({
        type: 'function_call_output',
        call_id: call.call_id,
        output: resultOf(loop.calls.length),
      });
      loop.calls.push({ id: call.call_id, name: call.name, arguments: JSON.parse(call.arguments) });
    }
  }
  throw new Error('the loop does not end');
}
