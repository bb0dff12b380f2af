/** The measurements of a target at one connection, in one round. */
import { Agent, request as sendRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { quantile } from '../start-cost.ts';
import type { Target } from './stand.ts';
import { wish } from './upstream.ts';

export const figures = {
  plainProcessorMs: 'processor time of a plain call, ms',
  streamProcessorMs: 'processor time of a stream of 50 chunks, ms',
  millionChunksProcessorS: 'processor time of a million chunks, s',
  plainMs: 'time of a plain answer, ms',
  firstContentMs: 'time to first content, ms',
  chunkMs: 'delay of a chunk, ms',
} as const;

export type Figure = keyof typeof figures;
export type Figures = Record<Figure, number>;

const plainCalls = 240;
const streams = 80;
const longStreams = 6;
const longChunks = 2_000;
const timedCalls = 30;
/** An environment that is still settling would delay the next call. */
const gapMs = 4;

export async function measure(target: Target): Promise<Figures> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const call = (message: string, stream: boolean): Promise<Timed> =>
    timed(target, agent, { message, stream });
  const spent = async (count: number, one: () => Promise<unknown>): Promise<number> => {
    const before = target.program?.processorMs() ?? Number.NaN;
    for (let index = 0; index < count; index += 1) await one();
    // Work after the last byte belongs to the call.
    await sleep(5 * gapMs);
    return ((target.program?.processorMs() ?? Number.NaN) - before) / count;
  };
  const times = async (message: string, stream: boolean): Promise<Timed[]> => {
    const all: Timed[] = [];
    for (let index = 0; index < timedCalls; index += 1) {
      await sleep(gapMs);
      all.push(await call(message, stream));
    }
    return all;
  };
  try {
    const plainProcessorMs = await spent(plainCalls, () => call(wish(50), false));
    const streamProcessorMs = await spent(streams, () => call(wish(50), true));
    const longMs = await spent(longStreams, () => call(wish(longChunks), true));
    const plain = await times(wish(20), false);
    const streamed = await times(wish(20), true);
    const delayed = [await call(wish(60, 4, true), true), await call(wish(60, 4, true), true)];
    return {
      plainProcessorMs,
      streamProcessorMs,
      millionChunksProcessorS: (longMs / longChunks) * 1000,
      plainMs: quantile(
        plain.map(({ wholeMs }) => wholeMs),
        0.5,
      ),
      firstContentMs: quantile(
        streamed.map(({ contentMs }) => contentMs),
        0.5,
      ),
      chunkMs: quantile(
        delayed.flatMap(({ delaysMs }) => delaysMs),
        0.5,
      ),
    };
  } finally {
    agent.destroy();
  }
}

interface Timed {
  contentMs: number;
  wholeMs: number;
  delaysMs: number[];
}

/** Throws an Error unless the answer is complete and has status 200. */
function timed(
  { url, headers }: Target,
  agent: Agent,
  { message, stream }: { message: string; stream: boolean },
): Promise<Timed> {
  const body = JSON.stringify({
    model: 'bench',
    messages: [{ role: 'user', content: message }],
    stream,
    ...(stream && { stream_options: { include_usage: true } }),
  });
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    let contentMs = Number.NaN;
    let text = '';
    const delaysMs: number[] = [];
    const options = { method: 'POST', agent, headers: { ...headers, 'content-type': 'application/json' } };
    const sent = sendRequest(`${url}/v1/chat/completions`, options, (reply) => {
      reply.setEncoding('utf8').on('data', (piece: string) => {
        const now = process.hrtime.bigint();
        if (Number.isNaN(contentMs) && /"content":"[^"]/.test(piece))
          contentMs = performance.now() - startedMs;
        for (const [, at] of piece.matchAll(/at=(\d+);/g)) delaysMs.push(Number(now - BigInt(at ?? 0)) / 1e6);
        text = (text + piece).slice(-400);
      });
      reply.once('error', reject).once('end', () => {
        const isWhole = stream || url === '' ? text.includes('[DONE]') : /"usage"|\[DONE\]/.test(text);
        if (reply.statusCode !== 200 || !isWhole) reject(new Error(`${url}: ${reply.statusCode} ${text}`));
        else resolve({ contentMs, wholeMs: performance.now() - startedMs, delaysMs });
      });
    });
    sent.once('error', reject).end(body);
  });
}
