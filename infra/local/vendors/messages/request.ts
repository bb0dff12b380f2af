/** A Messages request: the features of each model, and the part that the scripted model sees. Rules by model or version are in rules.ts. */
import { asksSummary, type JsonSchema, type Transcript } from '../script.ts';
import { readContentText } from '../vendor.ts';
import type { Block, MessagesBody } from './body.ts';

/** A Messages request of the right form for a model that exists. */
export interface MessagesCall {
  headers: Record<string, string>;
  body: MessagesBody;
  can: ClaudeModel;
  isNewer: boolean;
  /** Owner of the cache and the thinking. */
  account: string;
}

export const blocksOf = (content: string | Block[]): Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

/** Each block with its message, in order. */
export const listBlocks = ({ body: { messages } }: MessagesCall) =>
  messages.flatMap(({ role, content }, message) =>
    blocksOf(content).map((block, index) => ({ role, block, message, index })),
  );

export function readMessagesTranscript({ body }: MessagesCall): Transcript {
  const { messages, tools = [], tool_choice: choice } = body;
  const isSaid = ({ role, content }: MessagesBody['messages'][number]): boolean =>
    role === 'user' && !blocksOf(content).some(({ type }) => type === 'tool_result');
  const lastUser = messages.findLastIndex(isSaid);
  const after = messages.slice(lastUser + 1).map(({ content }) => blocksOf(content));
  const names = new Map(
    after.flat().flatMap((block) => (block.type === 'tool_use' ? [[block.id, block.name] as const] : [])),
  );
  // Texts of users in a row are blocks of one message.
  const text = blocksOf(messages[lastUser]?.content ?? '').findLast(({ type }) => type === 'text');
  const last = blocksOf(messages.at(-1)?.content ?? '').at(-1);
  const said = last?.type === 'text' && asksSummary(last.text) ? last : text;
  return {
    said: readContentText(said && [said]),
    turns: after.filter((blocks) => blocks.some(({ type }) => type === 'tool_use')).length,
    results: after
      .flat()
      .flatMap((block) =>
        block.type === 'tool_result'
          ? [{ name: names.get(block.tool_use_id) ?? '', text: readContentText(block.content) }]
          : [],
      ),
    // The model sees deferred tools only once it has searched for them.
    tools: [...tools, ...listAddedTools(body)]
      .toSorted(compareDeferred)
      .map(({ name, input_schema: parameters }) => ({
        name,
        parameters: parameters as JsonSchema,
      })),
    choice: choiceOf(choice),
    stops: body.stop_sequences ?? [],
    ...(choice &&
      'disable_parallel_tool_use' in choice &&
      choice.disable_parallel_tool_use && { single: true }),
    ...(body.output_config?.format && { schema: body.output_config.format.schema }),
    whole: () => JSON.stringify(messages),
  };
}

const compareDeferred = (a: { defer_loading?: unknown }, b: { defer_loading?: unknown }): number =>
  Number(a.defer_loading === true) - Number(b.defer_loading === true);

/** Tools that a turn of the system adds [docs/build-with-claude/mid-conversation-system-messages]. */
const listAddedTools = ({ messages }: MessagesBody) =>
  messages.flatMap(({ content }) =>
    blocksOf(content).flatMap((each) => (each.type === 'tool_addition' ? [each.tool.definition] : [])),
  );

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

/** Abilities of models, from Anthropic's pages about models, migration and caching [November 2026]. */
export interface ClaudeModel {
  /** `temperature`, `top_p`, `top_k`. */
  sampling: boolean;
  /** `tool_choice` any and tool. */
  forcedChoice: boolean;
  thinking: ('enabled' | 'disabled' | 'adaptive')[];
  /** Thinks without being asked. */
  thinksAlways: boolean;
  /** The default when the request does not say whether thinking is shown. */
  display: 'summarized' | 'omitted';
  /** Thinking is valid only in the conversation that it was made in. */
  boundThinking: boolean;
  /** An assistant message may come last. */
  prefill: boolean;
  /** Texts of the system may stand among the messages. */
  systemTurns: boolean;
  effort: boolean;
  /** Shorter prompts are not cached. */
  cachedFrom: number;
  outputMax: number;
}

const newest: ClaudeModel = {
  sampling: false,
  forcedChoice: false,
  thinking: ['adaptive'],
  thinksAlways: true,
  display: 'omitted',
  boundThinking: true,
  prefill: false,
  systemTurns: true,
  effort: true,
  cachedFrom: 512,
  outputMax: 128_000,
};

const older: ClaudeModel = {
  sampling: true,
  forcedChoice: true,
  thinking: ['enabled', 'disabled'],
  thinksAlways: false,
  display: 'summarized',
  boundThinking: false,
  prefill: true,
  systemTurns: false,
  effort: false,
  cachedFrom: 1024,
  outputMax: 64_000,
};

export const claudeModels: Record<string, ClaudeModel> = {
  'claude-opus-5-5': newest,
  'claude-fable-5-1': newest,
  // Thinks unless told not to, and then a call can be forced [models/haiku-5-5/migration-guide, 2026-10-07].
  'claude-haiku-5-5': { ...newest, thinking: ['adaptive', 'disabled'], forcedChoice: true, cachedFrom: 1024 },
  'claude-sonnet-4-6': { ...older, thinking: [...older.thinking, 'adaptive'], effort: true, prefill: false },
  'claude-haiku-4-5': { ...older, cachedFrom: 4096 },
  // Made up, with rules that no family has.
  'claude-lyra-7': { ...older, thinking: ['enabled'], prefill: false, outputMax: 48_000 },
};
