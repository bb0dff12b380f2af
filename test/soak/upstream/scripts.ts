/** The upstream's behaviour for each fault, by name. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Attempt } from '../checker/observations.ts';
import type { UpstreamFault } from '../plan/fault-kinds.ts';
import { doneFrame, errorOf, dataOf, finishFrame, usageFrame, usageOf, wordFrame } from './frames.ts';
import type { PlannedCall } from './soak-upstream.ts';

export interface Exchange {
  call: PlannedCall;
  attempt: Attempt;
  response: ServerResponse;
  socket: Socket;
}

export type Script = (exchange: Exchange) => void | Promise<void>;

const inputTokens = 20;
const lateMs = 22_000;
const longPauseMs = 350;
/** Long enough for the relay to read the written bytes before the connection is reset. */
const flushedMs = 100;

/** The first word contains a number, and the last word of odd answers has characters of several tokens, so words alone count too low. */
const moreTokens = 12;
const reportOf = ({ words }: PlannedCall) => ({ input: inputTokens, output: words.length + moreTokens });

function head({ response, attempt }: Exchange, status = 200, headers: Record<string, string> = {}): void {
  attempt.status = status;
  response.writeHead(status, {
    'content-type': status === 200 ? 'text/event-stream' : 'application/json',
    ...headers,
  });
}

/** Resolves when the buffer has room again, or when the relay has hung up. */
async function drained(response: ServerResponse): Promise<void> {
  if (response.destroyed) return;
  await new Promise<void>((resolve) => {
    const go = (): void => {
      response.off('drain', go).off('close', go);
      resolve();
    };
    response.once('drain', go).once('close', go);
  });
}

/** Writes this many words, and records each in the attempt before sending it. False if the relay has hung up. */
async function writeWords(exchange: Exchange, count: number, pauseMs: number): Promise<boolean> {
  const { call, attempt, response } = exchange;
  for (let from = 0; from < count; from += call.wordsPerPiece) {
    const words = call.words.slice(from, Math.min(count, from + call.wordsPerPiece));
    attempt.text += words.join('');
    const frames = words.map(wordFrame).join('');
    if (!response.write(frames)) await drained(response);
    if (response.destroyed) return false;
    if (pauseMs > 0) await sleep(pauseMs);
  }
  return true;
}

/** Ends an answer: the text is complete. */
function finish({ call, attempt, response }: Exchange, usage?: object): void {
  const report = reportOf(call);
  const reported = usage === undefined;
  attempt.whole = true;
  if (reported) attempt.reported = report;
  response.end(finishFrame + usageFrame(usage ?? usageOf(report)) + doneFrame);
}

export const wholeAnswer: Script = async (exchange) => {
  head(exchange);
  if (await writeWords(exchange, exchange.call.words.length, exchange.call.pauseMs)) finish(exchange);
};

/** Half of the words, then something else. */
const halfThen =
  (then: (exchange: Exchange) => void | Promise<void>): Script =>
  async (exchange) => {
    head(exchange);
    const half = Math.ceil(exchange.call.words.length / 2);
    if (await writeWords(exchange, half, exchange.call.pauseMs)) await then(exchange);
  };

const refused =
  (status: number, error: object | string, headers: Record<string, string> = {}): Script =>
  (exchange) => {
    head(exchange, status, typeof error === 'string' ? { ...headers, 'content-type': 'text/html' } : headers);
    exchange.response.end(typeof error === 'string' ? error : JSON.stringify(error));
  };

const overloaded = errorOf('soak: overloaded', 'server_error', 'server_error');
const limited = errorOf('soak: too many requests', 'requests', 'rate_limit_exceeded');
const serverErrors: Script[] = [
  refused(500, overloaded),
  refused(502, '<html><body>502 Bad Gateway</body></html>'),
  refused(503, overloaded),
  refused(529, ''),
];
const absurdCounts: object[] = [
  { prompt_tokens: 1e12, completion_tokens: 1e12, total_tokens: 2e12 },
  { prompt_tokens: -5, completion_tokens: -7, total_tokens: -12 },
  { prompt_tokens: 'many', completion_tokens: null, total_tokens: {} },
  { prompt_tokens: inputTokens, completion_tokens: 1, total_tokens: inputTokens + 1 },
];
const oneOf = <Each>(list: readonly Each[], { number }: PlannedCall): Each =>
  list[number % list.length] as Each;

/** All deviations of servers from the format that a reader must tolerate. */
const oddly: Script = async (exchange) => {
  const { call, attempt, response } = exchange;
  head(exchange);
  response.write(': a comment\r\n\r\n');
  for (const word of call.words) {
    attempt.text += word;
    const frame = Buffer.from(wordFrame(word).replace('data: ', 'data:').replaceAll('\n', '\r\n'));
    // The last word has multi-byte characters; every write splits one.
    const split = Math.floor(frame.length / 2) + 1;
    response.write(frame.subarray(0, split));
    await sleep(5);
    response.write(frame.subarray(split));
  }
  attempt.whole = true;
  attempt.reported = reportOf(call);
  const end = finishFrame + usageFrame(usageOf(attempt.reported)) + doneFrame;
  response.end(`event: junk\r\nid: 7\r\n\r\n${end}data: {"choices":[{"delta":{"content":"after"}}]}\n\n`);
};

/** A relay that did not request compression may decode it, or fail with an error. */
const gzipped: Script = (exchange) => {
  const { call, attempt, response } = exchange;
  attempt.text = call.words.join('');
  attempt.whole = true;
  attempt.reported = reportOf(call);
  head(exchange, 200, { 'content-encoding': 'gzip' });
  const frames =
    call.words.map(wordFrame).join('') + finishFrame + usageFrame(usageOf(attempt.reported)) + doneFrame;
  response.end(gzipSync(frames));
};

export const floodWord = 'flood ';
const floodWords = 5_000;
const floodPiecesKept = 2;
/** Characters of a flood that are recorded. */
export const floodKept = floodWord.length * floodWords * floodPiecesKept;

/** Sends 6 million characters in large pieces, more than any answer may have. */
const flooding: Script = async (exchange) => {
  const { attempt, response } = exchange;
  head(exchange);
  const piece = floodWord.repeat(floodWords);
  const frame = wordFrame(piece);
  // The text repeats itself, so comparing the start is enough.
  attempt.text = piece.repeat(floodPiecesKept);
  for (let pieces = 0; pieces < 200 && !response.destroyed; pieces += 1) {
    attempt.words = (attempt.words ?? 0) + floodWords;
    if (!response.write(frame)) await drained(response);
  }
  response.destroy();
};

export const scripts: Partial<Record<UpstreamFault, Script>> = {
  'hang-before-headers': () => {},
  'hang-between-chunks': halfThen(() => {}),
  'reset-before-headers': ({ socket }) => void socket.resetAndDestroy(),
  'reset-mid-stream': halfThen(async ({ socket }) => {
    await sleep(flushedMs);
    socket.resetAndDestroy();
  }),
  'odd-sse': oddly,
  'broken-sse': halfThen(({ response }) => void response.end('data: {"choices":[{"delta"\n\n')),
  'error-in-200': (exchange) => {
    head(exchange);
    exchange.response.end(dataOf(overloaded));
  },
  'error-mid-stream': halfThen(({ response }) => void response.end(dataOf(overloaded))),
  'no-usage': async (exchange) => {
    head(exchange);
    if (!(await writeWords(exchange, exchange.call.words.length, exchange.call.pauseMs))) return;
    exchange.attempt.whole = true;
    exchange.response.end(finishFrame + doneFrame);
  },
  'absurd-usage': async (exchange) => {
    head(exchange);
    if (await writeWords(exchange, exchange.call.words.length, exchange.call.pauseMs))
      finish(exchange, oneOf(absurdCounts, exchange.call));
  },
  'rate-limited': refused(429, limited),
  'rate-limited-retry-after': (exchange) => {
    exchange.attempt.retryAfterSeconds = 2;
    return refused(429, limited, { 'retry-after': '2' })(exchange);
  },
  'server-error': (exchange) => oneOf(serverErrors, exchange.call)(exchange),
  'refused-key': refused(401, errorOf('soak: wrong key', 'invalid_request_error', 'invalid_api_key')),
  'unasked-gzip': gzipped,
  flood: flooding,
  'slow-answer': async (exchange) => {
    head(exchange);
    if (await writeWords(exchange, exchange.call.words.length, longPauseMs)) finish(exchange);
  },
  'late-answer': async (exchange) => {
    await sleep(lateMs);
    await wholeAnswer(exchange);
  },
  'empty-answer': (exchange) => {
    head(exchange);
    exchange.response.end();
  },
  'caller-error': refused(400, errorOf('soak: no', 'invalid_request_error', 'bad_value', 'temperature')),
};
