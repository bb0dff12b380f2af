import { argumentsFor } from './arguments.ts';
import { imagesIn, lastUserText, textOf } from './request.ts';
import type { DemoRequest, DemoTool } from './request.ts';

export interface DemoAnswer {
  choices: DemoChoice[];
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
  /** Pause before the first word. */
  firstTokenMs: number;
}

/** Each word includes the space before it; joining them gives the text. One word counts as one token. */
export interface DemoChoice {
  words: string[];
  toolCall?: { id: string; name: string; arguments: string };
  finishReason: 'stop' | 'length' | 'tool_calls';
}

export function demoAnswer(request: DemoRequest): DemoAnswer {
  const choices = Array.from({ length: request.n ?? 1 }, (_, index) => choiceOf(request, index));
  const promptTokens = promptTokensOf(request);
  const completionTokens = choices.reduce((sum, choice) => sum + tokensOf(choice), 0);
  return {
    choices,
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
    firstTokenMs: request.model === 'demo-slow' ? 3000 : 20,
  };
}

function choiceOf(request: DemoRequest, index: number): DemoChoice {
  const tool = toolToCall(request);
  if (tool?.function) {
    const { name, parameters } = tool.function;
    const toolCall = {
      id: `call_demo_${index}`,
      name,
      arguments: argumentsFor(parameters, lastUserText(request)),
    };
    return { words: [], toolCall, finishReason: 'tool_calls' };
  }
  const words = beforeStop(answerText(request, index), request.stop).match(/\s*\S+\s*$|\s*\S+/g) ?? [];
  const limit = request.max_completion_tokens ?? request.max_tokens ?? Infinity;
  if (words.length > limit) return { words: words.slice(0, limit), finishReason: 'length' };
  return { words, finishReason: 'stop' };
}

/** The forced tool, or the first one when the user's text mentions a tool. None after a tool's result. */
function toolToCall({ tools, tool_choice: choice, messages }: DemoRequest): DemoTool | undefined {
  const last = messages.at(-1);
  if (!tools?.[0] || choice === 'none' || last?.role !== 'user') return undefined;
  if (choice === 'required') return tools[0];
  if (typeof choice === 'object' && choice?.function) {
    const wanted = choice.function.name;
    return tools.find((tool) => tool.function?.name === wanted) ?? tools[0];
  }
  const text = textOf(last).toLowerCase();
  const names = tools.flatMap((tool) => tool.function?.name.toLowerCase().split(/[^a-z]+/) ?? []);
  const spokenOf = names.some((word) => word.length >= 4 && text.includes(word));
  return spokenOf || text.includes('tool') ? tools[0] : undefined;
}

function answerText(request: DemoRequest, index: number): string {
  const last = request.messages.at(-1);
  const which = index === 0 ? '' : ` (Answer ${index + 1}.)`;
  if (last?.role === 'tool')
    return `The tool ${toolName(request, last.tool_call_id)}answered: ${textOf(last)}${which}`;
  if (request.model === 'demo-vision') return `I got ${imageCount(imagesIn(request))} from you.${which}`;
  const said = lastUserText(request).trim();
  if (said === '') return `Hello! I am the demo model of this relay.${which}`;
  return `Hello! You said: "${said}". I am the demo model of this relay, so this is all I know.${which}`;
}

function toolName({ messages }: DemoRequest, id: string | undefined): string {
  const call = messages
    .flatMap((message) => message.tool_calls ?? [])
    .find((candidate) => candidate.id === id);
  return call ? `${call.function.name} ` : '';
}

const imageCount = (count: number): string =>
  count === 1 ? '1 image' : `${count === 0 ? 'no' : count} images`;

function beforeStop(text: string, stop: DemoRequest['stop']): string {
  const marks = [stop ?? []].flat().filter((mark) => mark !== '');
  const ends = marks.map((mark) => text.indexOf(mark)).filter((at) => at >= 0);
  return text.slice(0, Math.min(text.length, ...ends));
}

/** A rough estimate: 4 characters per token, plus 4 tokens per message and 85 per image. */
function promptTokensOf(request: DemoRequest): number {
  const characters = request.messages.reduce((sum, message) => sum + textOf(message).length, 0);
  const tools = request.tools?.length ? JSON.stringify(request.tools).length : 0;
  return Math.ceil((characters + tools) / 4) + 4 * request.messages.length + 85 * imagesIn(request);
}

const tokensOf = ({ words, toolCall }: DemoChoice): number =>
  words.length + (toolCall ? 5 + Math.ceil(toolCall.arguments.length / 4) : 0);
