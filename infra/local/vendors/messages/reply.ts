import { piecesOf, wordsOf, type Counts } from '../script/tokens.ts';
import type { Turn } from '../script/script.ts';
import { asks } from '../script/words.ts';
import { thinkingOf, transcriptOf, type MessagesCall } from './call.ts';
import type { Block } from './schema.ts';
import { ownerOf, prefixBefore, redactedBlock, thinkingBlock } from './thinking.ts';

type Json = Record<string, unknown>;

/** A block as the model made it: of a cut call `input` is what came, as text. */
export type Made = { block: Block; input?: string };

const stopReasons: Record<Turn['finish'], string> = {
  stop: 'end_turn',
  calls: 'tool_use',
  length: 'max_tokens',
  refusal: 'refusal',
  pause: 'pause_turn',
};

/** The content of the answer. Each thinking block is signed with all that stands before it. */
export function contentOf(call: MessagesCall, turn: Turn): Made[] {
  const { said } = transcriptOf(call);
  const made: Made[] = [];
  const think = (text: string): void => {
    const [shown, prefix] = [
      thinkingOf(call) === 'summarized' ? text : '',
      prefixBefore(
        call.body,
        made.map(({ block }) => block),
      ).at(-1) ?? '',
    ];
    const facts = { text: shown, account: ownerOf(call), prefix };
    made.push({ block: asks(said, 'redacted') ? redactedBlock(facts) : thinkingBlock(facts) });
  };
  if (turn.thinking !== '') think(turn.thinking);
  if (turn.text !== '') made.push({ block: { type: 'text', text: turn.text } });
  for (const [index, { name, input }] of turn.calls.entries()) {
    if (index > 0 && turn.thinking !== '' && asks(said, 'interleave')) think(`Now call ${index + 1}.`);
    const id = `toolu_01${turn.question}${String(turn.step).padStart(4, '0')}${index}`;
    made.push({ block: { type: 'tool_use', id, name, input: parsedInput(input) }, input });
  }
  return made;
}

function parsedInput(input: string): Json {
  try {
    return JSON.parse(input) as Json;
  } catch {
    // A call that max_tokens cut.
    return {};
  }
}

const usageOf = ({ input, cacheRead, cacheWrite5m, cacheWrite1h, output, thinking }: Counts): Json => ({
  input_tokens: input,
  cache_creation_input_tokens: cacheWrite5m + cacheWrite1h,
  cache_read_input_tokens: cacheRead,
  cache_creation: { ephemeral_5m_input_tokens: cacheWrite5m, ephemeral_1h_input_tokens: cacheWrite1h },
  output_tokens: output,
  output_tokens_details: { thinking_tokens: thinking },
  server_tool_use: null,
  service_tier: 'standard',
});

export interface MessageAnswer {
  turn: Turn;
  made: Made[];
  counts: Counts;
  /** Overrides the turn's own. */
  stopReason?: string;
}

const messageOf = ({ body, account }: MessagesCall, answer: MessageAnswer): Json => ({
  id: `msg_01Double${account.length}${answer.turn.step}`,
  type: 'message',
  role: 'assistant',
  model: body.model,
  container: null,
  content: answer.made.map(({ block }) => block),
  stop_reason:
    answer.stopReason ??
    (answer.turn.stoppedBy === undefined ? stopReasons[answer.turn.finish] : 'stop_sequence'),
  stop_sequence: answer.turn.stoppedBy ?? null,
  stop_details:
    answer.turn.finish === 'refusal'
      ? { type: 'refusal', category: 'general_harms', explanation: 'The double refuses, as asked.' }
      : null,
  usage: usageOf(answer.counts),
});

export const wholeMessage = messageOf;

/** The events of a stream, in order. */
export function messageEvents(call: MessagesCall, answer: MessageAnswer): ({ type: string } & Json)[] {
  const whole = messageOf(call, answer);
  const { stop_reason: reason, stop_sequence: sequence, stop_details: details, ...started } = whole;
  const usage = usageOf({ ...answer.counts, output: 1, thinking: 0 });
  const { cache_creation: _split, service_tier: _tier, ...finalUsage } = usageOf(answer.counts);
  return [
    {
      type: 'message_start',
      message: { ...started, content: [], stop_reason: null, stop_sequence: null, stop_details: null, usage },
    },
    { type: 'ping' },
    ...answer.made.flatMap((made, index) => blockEvents(made, index)),
    {
      type: 'message_delta',
      delta: { stop_reason: reason, stop_sequence: sequence, stop_details: details, container: null },
      usage: finalUsage,
    },
    { type: 'message_stop' },
  ];
}

function blockEvents({ block, input = '' }: Made, index: number): ({ type: string } & Json)[] {
  const delta = (value: Json) => ({ type: 'content_block_delta', index, delta: value });
  const started = (value: Json) => ({ type: 'content_block_start', index, content_block: value });
  const stopped = { type: 'content_block_stop', index };
  if (block.type === 'thinking')
    return [
      started({ type: 'thinking', thinking: '', signature: '' }),
      ...wordsOf(block.thinking).map((thinking) => delta({ type: 'thinking_delta', thinking })),
      delta({ type: 'signature_delta', signature: block.signature }),
      stopped,
    ];
  if (block.type === 'text')
    return [
      started({ type: 'text', text: '', citations: null }),
      ...wordsOf(block.text).map((text) => delta({ type: 'text_delta', text })),
      stopped,
    ];
  if (block.type === 'tool_use')
    return [
      started({ ...block, input: {}, caller: { type: 'direct' } }),
      ...['', ...piecesOf(input)].map((json) => delta({ type: 'input_json_delta', partial_json: json })),
      stopped,
    ];
  return [started(block), stopped];
}
