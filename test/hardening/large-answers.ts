import type { Script } from '../support/scripted-upstream.ts';
import { chunk, chunkOf } from '../support/upstream-frames.ts';

/** Upstream scripts with answers that use much memory for their length. Most are unrealistic. */

const megabyte = 1024 * 1024;
const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const ending = `${frame(chunk({}, 'stop'))}data: [DONE]\n\n`;

/** `count` frames, then the end of a whole answer. */
const frames =
  (count: number, valueAt: (at: number) => object): Script =>
  async (_call, reply) => {
    for (let at = 0; at < count; at += 1) await reply.write(frame(valueAt(at)));
    await reply.write(ending);
    reply.end();
  };

/** The same text of frames `count` times, many in each write. */
const repeated =
  (count: number, text: string): Script =>
  async (_call, reply) => {
    const many = text.repeat(Math.ceil(megabyte / 4 / text.length));
    for (let left = count * text.length; left > 0; left -= many.length) await reply.write(many);
    await reply.write(ending);
    reply.end();
  };

const document =
  (text: () => string): Script =>
  (_call, reply) => {
    reply.head(200, { 'content-type': 'application/json' });
    reply.end(text());
  };

const likely = (token: string) => ({
  token,
  logprob: -12.345678,
  bytes: [...Buffer.from(token)],
});

/** The probabilities of one token, as OpenAI sends them: about 1.5 KB. */
const entry = (token: string) => ({
  ...likely(token),
  top_logprobs: Array.from({ length: 20 }, (_, at) => likely(`${token}${at}`)),
});

/** `choices`: number of choices that share the tokens. `token`: the same for all. */
export const logprobs = (tokens: number, { choices = 1, perFrame = 1, token = ' word' } = {}): Script =>
  frames(tokens / perFrame, (at) =>
    chunkOf([
      {
        index: at % choices,
        delta: { content: token.repeat(perFrame) },
        logprobs: { content: Array.from({ length: perFrame }, () => entry(token)) },
        finish_reason: null,
      },
    ]),
  );

const said = (extra: object): object => ({
  choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop', ...extra }],
});

export const logprobsInDocument = document(() =>
  JSON.stringify(said({ logprobs: { content: Array.from({ length: 9000 }, () => entry(' word')) } })),
);
export const objectsInDocument = document(
  () => `{"x":[${'{},'.repeat(5 * megabyte)}{}],${JSON.stringify(said({})).slice(1)}`,
);
export const objectsInEvent: Script = async (_call, reply) => {
  for (let at = 0; at < 4; at += 1) await reply.write(`data: {"x":[${'{},'.repeat(2.5 * megabyte)}{}]}\n\n`);
  await reply.write(ending);
  reply.end();
};

export const text = (characters: number, piece: string): Script =>
  frames(characters / piece.length, () => chunk({ content: piece }));
export const reasoning = frames(38_000, () => chunk({ reasoning: 'x'.repeat(100) }));
export const annotations = frames(40_000, () =>
  chunk({
    content: 'x',
    annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example' } }],
  }),
);
export const images = frames(8, () =>
  chunk({
    images: [{ image_url: { url: `data:image/png;base64,${'A'.repeat(1.9 * megabyte)}` } }],
  }),
);
export const details = frames(60_000, (index) =>
  chunk({ reasoning_details: [{ type: 'reasoning.text', index, text: 'x' }] }),
);
/** It contains no content, so the relay holds it back. */
export const annotationsAlone = repeated(
  100_000,
  'data: {"choices":[{"delta":{"annotations":[{"url_citation":{"url":"https://a.example"}}]}}]}\n\n',
);
export const shortArguments: Script = async (call, reply) => {
  await reply.data(
    chunk({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{"a":"' } }] }),
  );
  await repeated(
    200_000,
    'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"ab"}}]}}]}\n\n',
  )(call, reply);
};
export const alternating = (one: string, other: string): Script =>
  repeated(
    100_000,
    `data: {"choices":[{"delta":{"${one}":"ab"}},{"index":0,"delta":{"${other}":"ab"}}]}\n\n`,
  );

const calls = (count: number, name: string, id: (at: number) => string): Script =>
  frames(count, (index) =>
    chunk({ tool_calls: [{ index, id: id(index), function: { name, arguments: '{}' } }] }),
  );
export const tinyCalls = calls(100_000, 'f', (at) => `call_${at}`);
export const longName = calls(1, 'f'.repeat(megabyte), () => 'call_1');
export const longIds = calls(4, 'f', (at) => String(at).repeat(megabyte));
/** 1 MB of arguments in 3,000 pieces that each repeat the name. */
export const namedPieces = frames(3000, (at) => {
  const piece = at === 0 ? '{"a":"' : at === 2999 ? '"}' : 'x'.repeat(350);
  return chunk({ tool_calls: [{ index: 0, id: 'call_1', function: { name: 'f', arguments: piece } }] });
});
