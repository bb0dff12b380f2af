/**
 * The demo upstream, by which a local stack answers without an API key: `demo-chat` repeats what it was told and calls a tool
 * that is spoken of, `demo-vision` counts images, `demo-slow` waits, `demo-error` fails as it is told, `demo-embedding` gives
 * vectors. It takes no credentials. Equal requests get equal answers, word by word; one word counts as one token.
 */
import {
  parseChatCall,
  replyToChat,
  readChatTranscript,
  readTokenLimit,
  type VendorChatCall,
  type ChatStyle,
} from './chat.ts';
import { createEmbeddingEndpoint } from './embeddings.ts';
import {
  makeArguments,
  cutAtStop,
  callTokens,
  type ScriptTool,
  type Transcript,
  type ModelTurn,
} from './script.ts';
import { recordsIn } from '../../../shared/wire/json.ts';
import {
  readContentText,
  replyWithJson,
  formatSseFrame,
  replyWithSse,
  type VendorRefusal,
  type Vendor,
  type VendorReply,
} from './vendor.ts';

const talkingModels = ['demo-chat', 'demo-vision', 'demo-slow', 'demo-error'];
export const demoModels = [...talkingModels, 'demo-embedding'];

export const createDemoDouble = (): Vendor => ({
  name: 'demo',
  base: '/v1',
  models: demoModels,
  rules: [],
  serve({ method, path, headers, text }) {
    if (path === '/v1/embeddings')
      return createEmbeddingEndpoint({ 'demo-embedding': 256 }, refuse).serve(text);
    if (`${method} ${path}` !== 'POST /v1/chat/completions')
      return refuse({
        status: 404,
        message: 'There is no such endpoint in the demo upstream.',
        code: 'not_found',
      });
    const call = parseChatCall(headers, text);
    if (!call || call.messages.length === 0)
      return refuse({ status: 400, message: 'A model and messages are wanted.', code: 'invalid_request' });
    const { model, body } = call;
    if (!talkingModels.includes(model))
      return refuse({
        status: 404,
        message: `The model ${model} does not exist.`,
        code: 'model_not_found',
      });
    const transcript = readChatTranscript(call);
    if (model === 'demo-error') return findRequestedFailure(transcript.said);
    const turns = Array.from({ length: Number(body['n'] ?? 1) }, (_, index) =>
      turnOf(call, transcript, index),
    );
    const reply = replyToChat(call, { turns, usage: usageOf(call, turns) }, style);
    return {
      ...reply,
      // The end of a stream arrives together with its last word.
      frames: [...reply.frames.filter(isWord), reply.frames.filter((frame) => !isWord(frame)).join('')],
      pace: { firstMs: model === 'demo-slow' ? 3000 : wordMs, frameMs: wordMs },
    };
  },
});

const wordMs = 20;
const isWord = (frame: string | Uint8Array): boolean => String(frame).includes('"finish_reason":null');

const refuse = ({ status, message, code = null }: VendorRefusal): VendorReply =>
  replyWithJson(
    status,
    {
      error: {
        message,
        type: status >= 500 ? 'server_error' : 'invalid_request_error',
        param: null,
        code,
      },
    },
    status === 429 ? { 'retry-after': '2' } : {},
  );

const style: ChatStyle = {
  id: 'chatcmpl-demo',
  callId: ({ index }) => `call_demo_${index}`,
  usage: () => ({}),
  wordsOf: (text) => text.match(/\s*\S+\s*$|\s*\S+/g) ?? [],
};

function turnOf(call: VendorChatCall, transcript: Transcript, index: number): ModelTurn {
  const turn = { thinking: '', text: '', calls: [], step: transcript.turns, question: '' };
  const tool = chooseTool(call, transcript);
  if (tool) {
    const input = makeArguments(tool.parameters, transcript.said);
    return { ...turn, calls: [{ name: tool.name, input, custom: false }], finish: 'calls' };
  }
  const which = index === 0 ? '' : ` (Answer ${index + 1}.)`;
  const { text } = cutAtStop(`${answerText(call, transcript)}${which}`, transcript.stops);
  const words = style.wordsOf!(text);
  const limit = readTokenLimit(call);
  return words.length > limit
    ? { ...turn, text: words.slice(0, limit).join(''), finish: 'length' }
    : { ...turn, text: words.join(''), finish: 'stop' };
}

/** The forced tool, or the first one when the user's text mentions a tool. None after a tool's result. */
function chooseTool(
  { messages }: VendorChatCall,
  { tools, choice, said }: Transcript,
): ScriptTool | undefined {
  if (choice === 'none' || lastSaid(messages)?.role !== 'user') return undefined;
  if (choice === 'required') return tools[0];
  if (choice !== 'auto') return tools.find(({ name }) => name === choice.name) ?? tools[0];
  const text = said.toLowerCase();
  const names = tools.flatMap(({ name }) => name.toLowerCase().split(/[^a-z]+/));
  const spokenOf = names.some((word) => word.length >= 4 && text.includes(word));
  return spokenOf || text.includes('tool') ? tools[0] : undefined;
}

/** Skips the system messages that Claude Code adds after those of its user. */
const lastSaid = (messages: VendorChatCall['messages']) => messages.findLast(({ role }) => role !== 'system');

function answerText({ model, messages }: VendorChatCall, transcript: Transcript): string {
  const result = lastSaid(messages)?.role === 'tool' ? transcript.results.at(-1) : undefined;
  if (result) return `The tool ${result.name === '' ? '' : `${result.name} `}answered: ${result.text}`;
  const images = countImages(messages);
  if (model === 'demo-vision')
    return `I got ${images === 1 ? '1 image' : `${images === 0 ? 'no' : images} images`} from you.`;
  const said = transcript.said.trim();
  if (said === '') return 'Hello! I am the demo model of this relay.';
  return `Hello! You said: "${said}". I am the demo model of this relay, so this is all I know.`;
}

const countImages = (messages: VendorChatCall['messages']): number =>
  messages.flatMap(({ content }) => recordsIn(content)).filter(({ type }) => type === 'image_url').length;

/** A rough estimate of the prompt: 4 characters a token, and 4 tokens a message and 85 an image on top. */
function usageOf({ body, messages }: VendorChatCall, turns: ModelTurn[]): object {
  const characters = messages.reduce((sum, { content }) => sum + readContentText(content).length, 0);
  const tools = recordsIn(body['tools']).length > 0 ? JSON.stringify(body['tools']).length : 0;
  const prompt = Math.ceil((characters + tools) / 4) + 4 * messages.length + 85 * countImages(messages);
  const completion = turns
    .map(
      ({ text, calls }) =>
        style.wordsOf!(text).length + calls.reduce((sum, each) => sum + callTokens(each), 0),
    )
    .reduce((sum, tokens) => sum + tokens, 0);
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** Pauses between words, so that the failure arrives after the words and not together with them. */
const breakOff = (...more: string[]): VendorReply => ({
  ...replyWithSse([
    ...['This', ' answer', ' will', ' not'].map((content) =>
      formatSseFrame({
        id: style.id,
        object: 'chat.completion.chunk',
        created: 0,
        model: 'demo-error',
        choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }],
      }),
    ),
    ...more,
  ]),
  pace: { firstMs: 0, frameMs: wordMs },
});

const errorFrame = formatSseFrame({
  error: { message: 'The demo model broke off.', type: 'server_error', param: null, code: 'server_error' },
});

/** Failures that the user's text can select, besides a status such as `status 429`. */
const failures: [asked: RegExp, reply: VendorReply][] = [
  [/error mid-stream/i, breakOff(errorFrame)],
  [/early stop/i, breakOff()],
  [/hang up/i, { ...breakOff(), ending: 'destroyed' }],
  [/silence/i, { ...replyWithSse([]), ending: 'silent' }],
  [/empty/i, replyWithSse([])],
  [
    /html/i,
    {
      status: 502,
      headers: { 'content-type': 'text/html' },
      frames: ['<html><h1>502 Bad Gateway</h1></html>'],
    },
  ],
];

/** Fails in the way that the user's last text selects; by default with status 500. */
function findRequestedFailure(said: string): VendorReply {
  const [, failure] = failures.find(([asked]) => asked.test(said)) ?? [];
  if (failure) return failure;
  const status = Number(/status ([45]\d\d)/i.exec(said)?.[1] ?? 500);
  const code = status === 429 ? 'rate_limit_exceeded' : 'demo_error';
  return refuse({ status, message: `The demo upstream answers ${status}, as asked.`, code });
}
