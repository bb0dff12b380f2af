/** The upstream of a soak: applies the planned fault to each call, and records what it wrote and reported. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { Attempt } from '../checker/observations.ts';
import { isUpstreamFault } from '../plan/fault-kinds.ts';
import { scripts, wholeAnswer, type Script } from './scripts.ts';

/** What the upstream must know about a call before it arrives. */
export interface PlannedCall {
  number: number;
  fault: string;
  /** The answer, word by word. */
  words: readonly string[];
  /** Milliseconds between the pieces. */
  pauseMs: number;
  /** Words in one write. */
  wordsPerPiece: number;
  /** The fault hits every attempt; otherwise only the first, so that the relay can fail over. */
  everyAttempt: boolean;
}

export interface SoakUpstream {
  /** The value of a channel's `endpoint`, which contains the channel's id. */
  endpointFor: (this: void, channel: string) => string;
  expect(call: PlannedCall): void;
  attempts: Attempt[];
  close(): Promise<void>;
}

export async function startSoakUpstream(): Promise<SoakUpstream> {
  const planned = new Map<number, PlannedCall>();
  const attempts: Attempt[] = [];
  const tried = new Map<number, number>();
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = (await json(request)) as { model?: string };
    const number = Number(/soak call (\d+):/.exec(JSON.stringify(body))?.[1]);
    const call = planned.get(number);
    if (!call) return void response.writeHead(599).end();
    const before = tried.get(number) ?? 0;
    tried.set(number, before + 1);
    const struck = isUpstreamFault(call.fault) && (call.everyAttempt || before === 0);
    const attempt: Attempt = {
      call: number,
      channel: (request.url ?? '').split('/')[1] ?? '',
      model: body.model ?? '',
      atMs: Date.now(),
      served: struck ? call.fault : 'answer',
      status: 200,
      text: '',
      whole: false,
    };
    attempts.push(attempt);
    const script: Script = (struck && scripts[call.fault as keyof typeof scripts]) || wholeAnswer;
    await script({ call, attempt, response, socket: request.socket });
  };
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    endpointFor: (channel) => `http://127.0.0.1:${port}/${channel}/v1`,
    expect: (call) => void planned.set(call.number, call),
    attempts,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
