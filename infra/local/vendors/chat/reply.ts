import { jsonReply, sseFrame, sseReply } from '../script/frames.ts';
import type { ScriptCall, Turn } from '../script/script.ts';
import { piecesOf, wordsOf, type Counts } from '../script/tokens.ts';
import type { VendorReply } from '../script/vendor.ts';
import type { ChatCall } from './request.ts';

/** How a server of chat completions answers: the parts in which they differ. */
export interface ChatStyle {
  id: string;
  callId(place: { turn: Turn; index: number }): string;
  /** The field that carries thinking; absent: it is not shown. */
  thinkingField?: 'reasoning_content';
  /** Thinking stands in the content, between tags. */
  thinkTags?: boolean;
  usage(counts: Counts): object;
  /** Where a stream carries its usage; default: a last chunk, if the request asks. */
  usageIn?: 'choice';
  /** Fields of a call beside the standard ones. */
  extra?(place: { turn: Turn; index: number }): object | undefined;
  /** In a stream the extra fields come in a last piece that has no index. */
  extraTrails?: boolean;
  /** Index of a call in a stream; default: its place. */
  callIndex?(index: number): number | string;
  nameInPieces?: boolean;
  /** The last chunk repeats each call as a whole. */
  repeatsCalls?: boolean;
  /** Calls arrive whole, in one chunk each. */
  wholeCalls?: boolean;
}

export interface ChatAnswer {
  turn: Turn;
  counts: Counts;
}

export const chatReply = (call: ChatCall, answer: ChatAnswer, style: ChatStyle): VendorReply =>
  call.body['stream'] === true ? streamReply(call, answer, style) : wholeReply(call, answer, style);

const finishReasons: Record<Turn['finish'], string> = {
  stop: 'stop',
  calls: 'tool_calls',
  length: 'length',
  refusal: 'stop',
  pause: 'stop',
};

function wholeReply({ model }: ChatCall, { turn, counts }: ChatAnswer, style: ChatStyle): VendorReply {
  const text = contentOf(turn, style);
  const calls = turn.calls.map((call, index) => wholeCall(call, { turn, index }, style));
  const message = {
    role: 'assistant',
    content: turn.finish === 'refusal' || (text === '' && calls.length > 0) ? null : text,
    refusal: turn.finish === 'refusal' ? turn.text : null,
    ...(style.thinkingField && { [style.thinkingField]: turn.thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const choice = { index: 0, message, logprobs: null, finish_reason: finishReasons[turn.finish] };
  return jsonReply(200, {
    id: style.id,
    object: 'chat.completion',
    created: 1_790_000_000,
    model,
    choices: [choice],
    usage: style.usage(counts),
  });
}

const contentOf = ({ thinking, text }: Turn, { thinkTags }: ChatStyle): string =>
  thinkTags ? `<think>${thinking}</think>\n\n${text}` : text;

type CallPlace = { turn: Turn; index: number };

const wholeCall = ({ name, input, custom }: ScriptCall, place: CallPlace, style: ChatStyle): object => ({
  id: style.callId(place),
  ...style.extra?.(place),
  ...(custom
    ? { type: 'custom', custom: { name, input } }
    : { type: 'function', function: { name, arguments: input } }),
});

function streamReply(call: ChatCall, { turn, counts }: ChatAnswer, style: ChatStyle): VendorReply {
  const options = call.body['stream_options'] as { include_usage?: boolean } | undefined;
  const head = { id: style.id, object: 'chat.completion.chunk', created: 1_790_000_000, model: call.model };
  const usage = style.usage(counts);
  const chunk = (delta: object, finish: string | null = null, more: object = {}): string =>
    sseFrame({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish, ...more }] });
  const last = style.usageIn === 'choice' ? { usage } : {};
  return sseReply([
    chunk({ role: 'assistant', content: '' }),
    ...deltasOf(turn, style).map((delta) => chunk(delta)),
    chunk(lastDelta(turn, style), finishReasons[turn.finish], last),
    ...(options?.include_usage && style.usageIn === undefined
      ? [sseFrame({ ...head, choices: [], usage })]
      : []),
    sseFrame('[DONE]'),
  ]);
}

function deltasOf(turn: Turn, style: ChatStyle): object[] {
  const field = style.thinkingField;
  const textField = turn.finish === 'refusal' ? 'refusal' : 'content';
  return [
    ...(field ? wordsOf(turn.thinking).map((word) => ({ [field]: word })) : []),
    ...textPieces(turn, style).map((word) => ({ [textField]: word })),
    ...turn.calls.flatMap((call, index) =>
      callPieces(call, { turn, index }, style).map((piece) => ({ tool_calls: [piece] })),
    ),
  ];
}

/** Tags are cut over chunks. */
const textPieces = (turn: Turn, style: ChatStyle): string[] =>
  style.thinkTags ? piecesOf(contentOf(turn, style), 5) : wordsOf(turn.text);

function callPieces(call: ScriptCall, place: CallPlace, style: ChatStyle): object[] {
  const index = style.callIndex?.(place.index) ?? place.index;
  const extra = style.extra?.(place);
  const id = style.callId(place);
  if (style.wholeCalls) {
    const piece = { index, ...wholeCall(call, place, style.extraTrails ? { ...style, extra: none } : style) };
    return style.extraTrails && extra ? [piece, extra] : [piece];
  }
  const kind = call.custom ? 'custom' : 'function';
  const inputField = call.custom ? 'input' : 'arguments';
  const [first = '', ...others] = style.nameInPieces ? piecesOf(call.name) : [call.name];
  return [
    {
      index,
      id,
      type: kind,
      [kind]: { name: first, [inputField]: '' },
      ...(style.extraTrails ? undefined : extra),
    },
    ...others.map((name) => ({ index, [kind]: { name } })),
    ...piecesOf(call.input).map((input) => ({ index, [kind]: { [inputField]: input } })),
    ...(style.extraTrails && extra ? [extra] : []),
  ];
}

const none = (): undefined => undefined;

function lastDelta(turn: Turn, style: ChatStyle): object {
  if (!style.repeatsCalls || turn.calls.length === 0) return {};
  const calls = turn.calls.map((call, index) => ({
    index: style.callIndex?.(index) ?? index,
    ...wholeCall(call, { turn, index }, style),
  }));
  return { tool_calls: calls };
}
