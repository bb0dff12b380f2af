import type { Refusal, Rule, RuleFacts } from '../script/vendor.ts';
import { objectsIn, textIn } from '../script/vendor.ts';
import type { ChatCall } from './request.ts';

/** Rules that several chat servers have, each with its own words and sources. */

/** The first top-level field that is not in the list. */
export const unknownField = (body: Record<string, unknown>, known: string[]): string | undefined =>
  Object.keys(body).find((name) => !known.includes(name));

/** The fields that OpenAI-compatible servers have in common. */
export const commonFields = [
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'top_p',
  'n',
  'stop',
  'tools',
  'tool_choice',
  'response_format',
];

type Place = { message: number; call: number };

/** The first call id in the history that `keeps` refuses, with its place. */
export function refusedCallId(
  { messages }: ChatCall,
  keeps: (id: string) => boolean,
): (Place & { id: string }) | undefined {
  for (const [message, { calls }] of messages.entries()) {
    const call = calls.findIndex(({ id }) => !keeps(id));
    if (call >= 0) return { message, call, id: calls[call]?.id ?? '' };
  }
  return undefined;
}

/** Each call is answered by a tool message right after its turn. */
export const callsAnswered = (
  facts: Pick<RuleFacts, 'source' | 'date'>,
  refusal: (ids: string[]) => Refusal,
): Rule<ChatCall> => ({
  id: 'calls-answered',
  says: 'Each tool call is answered by a tool message directly after its turn.',
  ...facts,
  check({ messages }) {
    for (const [index, { calls }] of messages.entries()) {
      const rest = messages.slice(index + 1);
      const end = rest.findIndex(({ role }) => role !== 'tool');
      const answers = new Set(
        rest.slice(0, end === -1 ? rest.length : end).map((message) => message['tool_call_id']),
      );
      const open = calls.filter(({ id }) => !answers.has(id));
      if (open.length > 0) return refusal(open.map(({ id }) => id));
    }
    return undefined;
  },
});

/** Each tool message answers a call of the turn before it. */
export const resultsAsked = (
  facts: Pick<RuleFacts, 'source' | 'date'>,
  refusal: (message: number) => Refusal,
): Rule<ChatCall> => ({
  id: 'results-asked',
  says: 'Each tool message answers a call of the turn before it.',
  ...facts,
  check({ messages }) {
    const stray = messages.findIndex(({ role, tool_call_id: id }, index) => {
      if (role !== 'tool') return false;
      const turn = messages.slice(0, index).findLast((message) => message.role !== 'tool');
      return !turn?.calls.some((call) => call.id === textIn(id));
    });
    return stray >= 0 && refusal(stray);
  },
});

/** Tools are functions: another type is refused. */
export const functionsAlone = (
  facts: Pick<RuleFacts, 'source' | 'date'>,
  refusal: (tool: number, type: string) => Refusal,
): Rule<ChatCall> => ({
  id: 'functions-alone',
  says: 'A tool is a function; tools of another type, such as custom, are refused.',
  ...facts,
  check({ body }) {
    const tools = objectsIn(body['tools']);
    const other = tools.findIndex(({ type }) => type !== 'function');
    return other >= 0 && refusal(other, textIn(tools[other]?.['type']));
  },
});
