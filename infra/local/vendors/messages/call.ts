import type { JsonSchema } from '../../demo/request.ts';
import type { Transcript } from '../script/script.ts';
import type { ClaudeModel } from './models.ts';
import type { Block, MessagesBody } from './schema.ts';

/** A Messages request of the right form for a model that exists. */
export interface MessagesCall {
  headers: Record<string, string>;
  body: MessagesBody;
  can: ClaudeModel;
  isNewer: boolean;
  /** Whose cache and whose thinking this is. */
  account: string;
}

export const blocksOf = (content: string | Block[]): Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

/** Each block with its message, in order. */
export const placedBlocks = ({ body: { messages } }: MessagesCall) =>
  messages.flatMap(({ role, content }, message) =>
    blocksOf(content).map((block, index) => ({ role, block, message, index })),
  );

const textOf = (content: string | { type: string; text?: string }[] | undefined): string =>
  typeof content === 'string' ? content : (content ?? []).map(({ text }) => text ?? '').join(' ');

export function transcriptOf({ body }: MessagesCall): Transcript {
  const { messages, tools = [], tool_choice: choice } = body;
  const isSaid = ({ role, content }: MessagesBody['messages'][number]): boolean =>
    role === 'user' && !blocksOf(content).some(({ type }) => type === 'tool_result');
  const lastUser = messages.findLastIndex(isSaid);
  const after = messages.slice(lastUser + 1).map(({ content }) => blocksOf(content));
  const names = new Map(
    after.flat().flatMap((block) => (block.type === 'tool_use' ? [[block.id, block.name] as const] : [])),
  );
  // Texts of users in a row are blocks of one message.
  const said = blocksOf(messages[lastUser]?.content ?? '').findLast(({ type }) => type === 'text');
  return {
    said: textOf(said && [said]),
    turns: after.filter((blocks) => blocks.some(({ type }) => type === 'tool_use')).length,
    results: after
      .flat()
      .flatMap((block) =>
        block.type === 'tool_result'
          ? [{ name: names.get(block.tool_use_id) ?? '', text: textOf(block.content) }]
          : [],
      ),
    tools: tools.map(({ name, input_schema: parameters }) => ({
      name,
      parameters: parameters as JsonSchema,
    })),
    choice: choiceOf(choice),
    stops: body.stop_sequences ?? [],
    ...(choice &&
      'disable_parallel_tool_use' in choice &&
      choice.disable_parallel_tool_use && { single: true }),
    ...(body.output_config?.format && { schema: body.output_config.format.schema }),
  };
}

function choiceOf(choice: MessagesBody['tool_choice']): Transcript['choice'] {
  if (choice?.type === 'tool') return { name: choice.name };
  if (choice?.type === 'any') return 'required';
  return choice?.type === 'none' ? 'none' : 'auto';
}

/** How the model thinks in this call: not at all, or shown or with empty text. */
export function thinkingOf({ body: { thinking }, can }: MessagesCall): 'off' | 'summarized' | 'omitted' {
  const isOn = thinking ? thinking.type === 'enabled' || thinking.type === 'adaptive' : can.thinksAlways;
  if (!isOn) return 'off';
  return (thinking && 'display' in thinking && thinking.display) || can.display;
}
