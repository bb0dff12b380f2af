import type { Script } from './scripted-upstream.ts';
import { chunk, toolDelta, usageChunk } from './upstream-frames.ts';

/** The given frames, then `[DONE]`. */
export const frames =
  (...list: (object | string)[]): Script =>
  async (_call, reply) => {
    await reply.data(...list, '[DONE]');
    reply.end();
  };

/** The text word by word, finish, usage, `[DONE]`. */
export const textStream = (text: string, finishReason = 'stop'): Script =>
  frames(
    chunk({ role: 'assistant', content: '' }),
    ...(text.match(/\s*\S+/g) ?? []).map((content) => chunk({ content })),
    chunk({}, finishReason),
    usageChunk(),
  );

/** One tool call with arguments in two pieces. */
export const toolCallStream = (name: string, args: object, id = 'call_1'): Script => {
  const text = JSON.stringify(args);
  const middle = Math.ceil(text.length / 2);
  return frames(
    chunk({
      role: 'assistant',
      content: null,
      ...toolDelta(0, { id, type: 'function', function: { name, arguments: '' } }),
    }),
    chunk(toolDelta(0, { function: { arguments: text.slice(0, middle) } })),
    chunk(toolDelta(0, { function: { arguments: text.slice(middle) } })),
    chunk({}, 'tool_calls'),
    usageChunk(),
  );
};

/** A tool call, unless the last message is a tool result; then a text with that result. */
export const toolLoop =
  (name: string, args: object): Script =>
  (call, reply) => {
    const messages = call.body['messages'] as { role: string; content: string }[];
    const last = messages.at(-1);
    const script =
      last?.role === 'tool' ? textStream(`The tool said ${last.content}`) : toolCallStream(name, args);
    return script(call, reply);
  };

/** Text, then silence until the relay hangs up. */
export const textThenSilence =
  (text: string): Script =>
  async (_call, reply) => {
    await reply.data(chunk({ role: 'assistant', content: text }));
    await reply.hang();
  };

/** Complete silence: not even a status. */
export const silence: Script = (_call, reply) => reply.hang();
