import type { SeenRequest } from '../../infra/local/vendors/vendors.ts';

/** The requests of one session at a vendor. */
export interface SessionFacts {
  requests: number;
  /** Calls that were answered, in the request with most of them. */
  toolTurns: number;
  /** Turns of that request that returned with the vendor's state unchanged. */
  statesBack: number;
  /** Summaries that the program asked for. */
  compactions: number;
  /** What the vendor rejected or only tolerated. */
  objections: string[];
}

type Json = Record<string, unknown>;

export function sessionFacts(requests: readonly SeenRequest[]): SessionFacts {
  const [turns = []] = requests
    .map(({ body }) => turnsOf(body as Json))
    .toSorted((one, other) => other.length - one.length);
  return {
    requests: requests.length,
    toolTurns: turns.length,
    statesBack: turns.filter(({ hasState }) => hasState).length,
    compactions: requests.filter(({ body }) => isCompaction(body as Json) || isAsked(body as Json)).length,
    objections: requests.flatMap(({ path, status, rule, notes, body }) => [
      ...(status >= 400 ? [`${path}: ${status} ${rule}`] : []),
      // Without the tools, Claude's thinking belongs to another conversation, so the vendor omits it.
      ...(isCompaction(body as Json) ? [] : notes),
    ]),
  };
}

/** Codex asks for a summary without tools; the text of it stands in later requests, too. */
const isCompaction = ({ tools, ...body }: Json): boolean =>
  objectsIn(tools).length === 0 &&
  JSON.stringify(body).includes('You are performing a CONTEXT CHECKPOINT COMPACTION');

/** The relay asks with the tools, in words or by the item with which Codex asked it. */
function isAsked({ input, messages }: Json): boolean {
  const last = objectsIn(input ?? messages).at(-1) ?? {};
  return last['type'] === 'compaction_trigger' || /Write that summary now/.test(JSON.stringify(last));
}

/** Turns that called tools, in each dialect. */
function turnsOf({ input, messages }: Json): { hasState: boolean }[] {
  if (input !== undefined) {
    const items = objectsIn(input);
    return items.flatMap((item, at) =>
      /^(function|custom_tool)_call$/.test(String(item['type']))
        ? [{ hasState: items[at - 1]?.['encrypted_content'] !== undefined }]
        : [],
    );
  }
  return objectsIn(messages).flatMap((message) => {
    const blocks = objectsIn(message['content']);
    if (blocks.some(({ type }) => type === 'tool_use'))
      return [{ hasState: blocks.some(({ type, signature }) => type === 'thinking' && signature !== '') }];
    const [call] = objectsIn(message['tool_calls']);
    return call ? [{ hasState: hasChatState(message, call) }] : [];
  });
}

function hasChatState({ reasoning_content: text }: Json, { extra_content: extra }: Json): boolean {
  const signed = JSON.stringify(extra ?? {});
  const isSigned = signed.includes('thought_signature') && !signed.includes('skip_thought_signature');
  return isSigned || (typeof text === 'string' && text !== '');
}

const objectsIn = (value: unknown): Json[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'object' && each !== null) : [];
