/** Makes one call as its plan says: reads at once, slowly or not at all, or hangs up. */
import { Agent, request as send, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CallSeen } from '../checker/observations.ts';
import { floodKept, floodWord } from '../upstream/scripts.ts';
import { AnswerReader, refusalOf } from './answer-reader.ts';
import type { SoakKey } from './rows.ts';

export interface CallPlan {
  number: number;
  fault: string;
  key: SoakKey;
  model: string;
  endpoint: 'chat' | 'responses';
  streamed: boolean;
  maxTokens?: number | undefined;
  /** Another body or key, which must be answered with this status. */
  wrong?: { body?: string; key?: string; status: number } | undefined;
}

/** The relay disconnects a client that reads nothing for 30 s. */
const stallMs = 35_000;
const slowPauseMs = 100;
const hangUpEarlyMs = 60;

const paths = { chat: '/v1/chat/completions', responses: '/v1/responses' };

function bodyOf({ number, model, endpoint, streamed, maxTokens }: CallPlan): string {
  const prompt = `soak call ${number}: say the words that were planned for you, please.`;
  const limit = endpoint === 'chat' ? { max_tokens: maxTokens } : { max_output_tokens: maxTokens };
  const shared = { model, stream: streamed, ...(maxTokens !== undefined && limit) };
  return JSON.stringify(
    endpoint === 'chat'
      ? { ...shared, messages: [{ role: 'user', content: prompt }] }
      : { ...shared, input: prompt, store: false },
  );
}

export class CallClient {
  readonly #origin: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(origin: string) {
    this.#origin = origin;
  }

  close(): void {
    this.#agent.destroy();
  }

  async call(plan: CallPlan): Promise<CallSeen> {
    const { key, wrong } = plan;
    const seen: CallSeen = {
      number: plan.number,
      account: key.account,
      key: key.hash.slice(0, 12),
      model: plan.model,
      fault: plan.fault,
      startedMs: Date.now(),
      endedMs: 0,
      end: 'cut',
      text: '',
      ...(wrong && { expectedStatus: wrong.status }),
    };
    await this.#exchange(plan, seen).catch(() => {});
    seen.endedMs = Date.now();
    return seen;
  }

  async #exchange(plan: CallPlan, seen: CallSeen): Promise<void> {
    const { endpoint, key, wrong, fault } = plan;
    const request = send(this.#origin + paths[endpoint], {
      agent: this.#agent,
      method: 'POST',
      headers: { authorization: `Bearer ${wrong?.key ?? key.text}`, 'content-type': 'application/json' },
    });
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    request
      .once('response', resolve)
      .on('error', reject)
      .end(wrong?.body ?? bodyOf(plan));
    if (fault === 'hang-up-early') {
      promise.catch(() => {});
      await sleep(hangUpEarlyMs);
      seen.end = 'left';
      request.destroy();
      return;
    }
    const response = await promise;
    seen.status = response.statusCode;
    const id = response.headers['x-request-id'];
    if (typeof id === 'string' && id !== '') seen.requestId = id;
    const retryAfter = Number(response.headers['retry-after']);
    if (retryAfter > 0) seen.retryAfterSeconds = retryAfter;
    if (response.statusCode === 200) await readAnswer(response, plan, seen);
    else await readRefusal(response, seen);
  }
}

async function readRefusal(response: IncomingMessage, seen: CallSeen): Promise<void> {
  let body = '';
  response.setEncoding('utf8');
  for await (const piece of response) body += String(piece);
  seen.error = refusalOf(body);
  seen.end = 'error';
}

async function readAnswer(response: IncomingMessage, plan: CallPlan, seen: CallSeen): Promise<void> {
  const reader = new AnswerReader(plan.streamed);
  let pieces = 0;
  let complete = true;
  try {
    for await (const piece of response.setEncoding('utf8')) {
      seen.firstContentMs ??= Date.now();
      reader.read(String(piece));
      pieces += 1;
      if (plan.fault === 'hang-up-late' && reader.text !== '') {
        seen.end = 'left';
        break;
      }
      if (plan.fault === 'stalled-reader' && reader.text !== '' && pieces > 1 && !seen.stalled) {
        seen.stalled = true;
        await sleep(stallMs);
      }
      if (plan.fault === 'slow-reader') await sleep(slowPauseMs);
    }
  } catch {
    complete = false;
  }
  if (seen.end !== 'left') seen.end = reader.end(complete && response.complete);
  seen.text = plan.fault === 'flood' ? shortened(reader.text) : reader.text;
  seen.error = reader.error;
}

/** Shortens a flood, which repeats itself; keeps everything else. */
const shortened = (text: string): string =>
  text.length > floodKept && floodWord.repeat(Math.ceil(text.length / floodWord.length)).startsWith(text)
    ? text.slice(0, floodKept)
    : text;
