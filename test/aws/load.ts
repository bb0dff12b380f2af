/**
 * Sends short chat calls at a fixed rate, however long the answers take, and fails unless nearly all of them complete. For a
 * stack of your own: step "A thousand closes a second" of docs/first-deployment.md.
 *
 *     node infra/bootstrap/bootstrap.mjs test/aws/load.ts --url URL --keys FILE --rate 1000 --seconds 600
 */
import { readFileSync } from 'node:fs';
import { Agent as HttpAgent, request as sendHttp } from 'node:http';
import { Agent as HttpsAgent, request as sendHttps } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

export interface Load {
  /** The address of chat completions. */
  url: string;
  /** One for each customer, because one DynamoDB item can't take this many writes. */
  keys: string[];
  /** Calls a second, reached after the first tenth of the time. */
  rate: number;
  seconds: number;
}

export interface Figures {
  sent: number;
  /** Number of calls by how they ended: `complete`, a status, `cut` or an error's code. */
  ends: Record<string, number>;
  /** Milliseconds of complete calls, in order. */
  times: number[];
  /** Seconds from the first call to the last answer. */
  took: number;
}

const model = 'gpt-4o-mini';
const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hello!' }] });
const tickMs = 10;

export async function sendLoad({ url, keys, rate, seconds }: Load): Promise<Figures> {
  if (keys.length === 0) throw new Error('there is no key to call with');
  const isHttps = url.startsWith('https:');
  const agent = new (isHttps ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: 4 * rate });
  const call = (key: string): Promise<string> =>
    new Promise((resolve) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const sent = (isHttps ? sendHttps : sendHttp)(url, { method: 'POST', agent, headers }, (answer) => {
        text(answer).then(
          (read) => {
            if (answer.statusCode !== 200) resolve(String(answer.statusCode));
            else resolve(read.trimEnd().endsWith('data: [DONE]') ? 'complete' : 'cut');
          },
          () => resolve('cut'),
        );
      });
      sent.setTimeout(60_000, () => sent.destroy(Object.assign(new Error('silence'), { code: 'silence' })));
      sent.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'cut')).end(body);
    });

  const figures: Figures = { sent: 0, ends: {}, times: [], took: 0 };
  const startedMs = performance.now();
  const calls: Promise<void>[] = [];
  for (;;) {
    const elapsed = (performance.now() - startedMs) / 1000;
    const due = Math.floor(countDue(Math.min(elapsed, seconds), { rate, seconds }));
    while (figures.sent < due) {
      const key = keys[figures.sent++ % keys.length] ?? '';
      const sentMs = performance.now();
      calls.push(
        call(key).then((end) => {
          figures.ends[end] = (figures.ends[end] ?? 0) + 1;
          if (end === 'complete') figures.times.push(performance.now() - sentMs);
        }),
      );
    }
    if (elapsed >= seconds) break;
    await sleep(tickMs);
  }
  await Promise.all(calls);
  agent.destroy();
  figures.times.sort((a, b) => a - b);
  return { ...figures, took: (performance.now() - startedMs) / 1000 };
}

/** Calls that must have started after this many seconds. */
function countDue(elapsed: number, { rate, seconds }: Pick<Load, 'rate' | 'seconds'>): number {
  const rise = seconds / 10;
  return elapsed < rise ? (rate * elapsed ** 2) / (2 * rise) : rate * (elapsed - rise / 2);
}

/** Undefined if the stack kept up: 99.9 % complete, and the last answer soon after the last call. */
export function findShortfall({ sent, ends, took }: Figures, { seconds }: Load): string | undefined {
  const complete = ends['complete'] ?? 0;
  if (complete < sent * 0.999) return `${sent - complete} of ${sent} calls did not end as they should`;
  if (took > seconds * 1.05 + 10) return `the answers took ${took.toFixed(0)} s instead of ${seconds}`;
  return undefined;
}

const describe = ({ sent, ends, times, took }: Figures): string[] => [
  `${sent} calls in ${took.toFixed(0)} s, ${(sent / took).toFixed(0)} a second`,
  ...Object.entries(ends).map(([end, count]) => `${end}: ${count}`),
  ...[0.5, 0.99, 0.999].map(
    (part) => `${part * 100} % within ${times[Math.floor(times.length * part)]?.toFixed(0) ?? '-'} ms`,
  ),
];

if (import.meta.main) {
  const string = { type: 'string' } as const;
  const { values } = parseArgs({ options: { url: string, keys: string, rate: string, seconds: string } });
  const load: Load = {
    url: values.url ?? '',
    keys: readFileSync(values.keys ?? '', 'utf8')
      .split('\n')
      .filter(Boolean),
    rate: Number(values.rate),
    seconds: Number(values.seconds),
  };
  const figures = await sendLoad(load);
  for (const line of describe(figures)) console.log(line);
  const shortfall = findShortfall(figures, load);
  if (shortfall !== undefined) {
    console.error(shortfall);
    process.exitCode = 1;
  }
}
