/**
 * `npm run bench -- --shapes`: the cost of each worst-case request for the server, how long it blocks the event loop, and the effect on
 * a neighbour. Writes `shapes.md`. Takes about five minutes on an idle machine.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { Agent, request as sendRequest } from 'node:http';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { waitForQuiet } from '../compare/quiet.ts';
import { quantile } from '../start-cost.ts';
import type { Sent } from './sender.ts';
import { models, shapes } from './shapes.ts';
import { keyOf, startShapesStand, type ShapesStand } from './stand.ts';
import type { Hold } from './watch-loop.ts';

/** Alone: one request, and more until the time is over. */
const aloneMs = 350;
const aloneMax = 12;
const quietMs = 600;
/** Number of shapes after which the quiet neighbour is measured again. */
const quietShapes = 7;
const loadedMs = 2_000;
const neighbourEveryMs = 20;
const connections = 4;
/** Between an answer and the next request of its connection. */
const pauseMs = 50;
const holdMsMax = 50;
const ratioMax = 1.5;

interface Row {
  shape: string;
  pauperMs: number;
  payerMs: number;
  hold: Hold;
  quiet: number[];
  loaded: number[];
  answers: { pauper: string; payer: string };
}

/** @param only a part of the names of the wanted shapes */
export async function measureShapes({
  only,
  out,
  force,
}: {
  only: string;
  out: string;
  force: boolean;
}): Promise<void> {
  if (!force) await waitForQuiet(0.3);
  const stand = await startShapesStand(force);
  try {
    await neighbour(stand, 1_000);
    const rows: Row[] = [];
    for (const shape of Object.keys(shapes).filter((name) => name.includes(only))) {
      const row = await measureShape(stand, shape);
      rows.push(row);
      console.error(cells(row, row.quiet).join(' | '));
    }
    const text = markdown(rows);
    mkdirSync(out, { recursive: true });
    writeFileSync(join(out, 'shapes.md'), text);
    console.log(text);
  } finally {
    await stand.stop();
  }
}

async function measureShape(stand: ShapesStand, shape: string): Promise<Row> {
  const one = (account: 'payer' | 'pauper') => ({ key: keyOf(account), sender: stand.senders[account] });
  const alone = async (account: 'payer' | 'pauper'): Promise<Sent & { processorMs: number }> => {
    // Builds the body, and warms up the compiler.
    const order = { shape, senders: [one(account)], connections: 1, forMs: aloneMs, pauseMs: 0 };
    await stand.send({ ...order, requestsMax: 1 });
    const before = stand.processorMs();
    const sent = await stand.send({ ...order, requestsMax: aloneMax });
    return { ...sent, processorMs: (stand.processorMs() - before) / sent.requests };
  };
  const quiet = await neighbour(stand, quietMs);
  await stand.hold();
  const pauper = await alone('pauper');
  const payer = await alone('payer');
  const hold = await stand.hold();
  const order = { shape, senders: [one('pauper'), one('payer')], connections, pauseMs };
  const attack = stand.send({ ...order, requestsMax: Number.MAX_SAFE_INTEGER, forMs: loadedMs });
  const loaded = await neighbour(stand, loadedMs);
  await attack;
  const underLoad = await stand.hold();
  await sleep(50);
  return {
    shape,
    pauperMs: pauper.processorMs,
    payerMs: payer.processorMs,
    hold: hold.processorMs > underLoad.processorMs ? hold : underLoad,
    quiet,
    loaded,
    answers: { pauper: common(pauper), payer: common(payer) },
  };
}

const common = ({ answers }: Sent): string =>
  Object.entries(answers).toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? '';

/** Milliseconds of each call since its planned start, so waiting for the previous call counts. */
async function neighbour({ url, headers }: ShapesStand, forMs: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true });
  const body = JSON.stringify({ model: models.chat, messages: [{ role: 'user', content: 'hello' }] });
  const all = {
    authorization: `Bearer ${keyOf('neighbour')}`,
    'content-type': 'application/json',
    ...headers,
  };
  const call = (dueMs: number): Promise<number> =>
    new Promise((resolve, reject) => {
      const options = { method: 'POST', agent, headers: all };
      const sent = sendRequest(`${url}/v1/chat/completions`, options, (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`the neighbour got ${answer.statusCode}`));
        answer.resume().once('end', () => resolve(performance.now() - dueMs));
      });
      sent.once('error', reject).end(body);
    });
  const startedMs = performance.now();
  const calls: Promise<number>[] = [];
  for (let dueMs = startedMs; dueMs < startedMs + forMs; dueMs += neighbourEveryMs) {
    await sleep(Math.max(0, dueMs - performance.now()));
    calls.push(call(performance.now()));
  }
  const times = await Promise.allSettled(calls);
  agent.destroy();
  return times.map((one) => (one.status === 'fulfilled' ? one.value : Number.POSITIVE_INFINITY));
}

const number = (value: number): string => (value < 10 ? value.toFixed(1) : String(Math.round(value)));
const ratio = (loaded: number[], quiet: number[], share: number): string =>
  number(quantile(loaded, share) / quantile(quiet, share));

const cells = ({ shape, pauperMs, payerMs, hold, loaded, answers }: Row, quiet: number[]): string[] => [
  shape,
  number(pauperMs),
  number(payerMs),
  number(hold.processorMs),
  number(hold.clockMs),
  ratio(loaded, quiet, 0.95),
  ratio(loaded, quiet, 0.99),
  `${answers.pauper}, ${answers.payer}`,
];

function markdown(rows: Row[]): string {
  const all = rows.flatMap(({ quiet }) => quiet);
  const around = (at: number): number[] => {
    const from = Math.max(0, Math.min(at - Math.floor(quietShapes / 2), rows.length - quietShapes));
    return rows.slice(from, from + quietShapes).flatMap(({ quiet }) => quiet);
  };
  const machine = `${availableParallelism()} x ${cpus()[0]?.model.trim() || process.arch}, Node ${process.version}`;
  const head = [
    'shape',
    'processor ms, balance 0',
    'processor ms, paying',
    'hold, processor ms',
    'hold, clock ms',
    "neighbour's p95",
    "neighbour's p99",
    'answers',
  ];
  const held = rows.filter(({ hold }) => hold.processorMs > holdMsMax).length;
  const slowed = rows.filter(
    ({ loaded }, at) => quantile(loaded, 0.95) > ratioMax * quantile(around(at), 0.95),
  ).length;
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => number(quantile(all, share)));
  return [
    `${rows.length} shapes on ${new Date().toISOString().slice(0, 10)}, ${machine}. Quiet neighbour: p50 ${p50} ms, p95 ${p95} ms, p99 ${p99} ms.`,
    `${held} shapes hold the event loop for more than ${holdMsMax} ms of processor; beside ${slowed} the neighbour's p95 is more than ${ratioMax} times the quiet one.`,
    '',
    `| ${head.join(' | ')} |`,
    `|${' --- |'.repeat(head.length)}`,
    ...rows.map((row, at) => `| ${cells(row, around(at)).join(' | ')} |`),
    '',
  ].join('\n');
}
