import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

/** Handles a connection after the first bytes of a request. */
export type RawScript = (socket: Socket) => void;

export interface RawUpstream {
  /** `host:port`. */
  address: string;
  script(script: RawScript): void;
  stop(): Promise<void>;
}

/** A raw TCP server, which can send what an HTTP library would not. */
export async function startRawUpstream(): Promise<RawUpstream> {
  let script: RawScript = says();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
    socket.once('data', () => {
      socket.resume();
      script(socket);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    script: (next) => {
      script = next;
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Sends this, then closes the connection normally. */
export const says =
  (...pieces: (string | Uint8Array)[]): RawScript =>
  (socket) => {
    for (const piece of pieces) socket.write(piece);
    socket.end();
  };

const eventStreamHead = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n';
const firstWords = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"one two"}}]}\n\n';
const chunked = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

export const rawFailures = {
  'hangs up without a word': (socket) => socket.end(),
  'resets without a word': (socket) => socket.resetAndDestroy(),
  'speaks another protocol': says('SSH-2.0-OpenSSH_9.6\r\n'),
  'sends bytes that are nothing': says(Uint8Array.from({ length: 4096 }, (_, at) => (at * 7) % 256)),
  'cuts its status line': says('HTTP/1.1 2'),
  'cuts its headers': says('HTTP/1.1 200 OK\r\ncontent-ty'),
  'sends 100 KB of headers': says(`HTTP/1.1 200 OK\r\nx-junk: ${'x'.repeat(100_000)}\r\n\r\n`),
  'switches protocols unasked': says(
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
  ),
  'says 100 Continue and hangs up': says('HTTP/1.1 100 Continue\r\n\r\n'),
  'sends two lengths': says(`${eventStreamHead}content-length: 5\r\ncontent-length: 6\r\n\r\nhello`),
  'resets after its head': (socket) => socket.write(`${eventStreamHead}\r\n`, () => socket.resetAndDestroy()),
  'announces more than it sends': says(`${eventStreamHead}content-length: 500\r\n\r\n: hello\n\n`),
  'breaks its first chunk': says(`${eventStreamHead}transfer-encoding: chunked\r\n\r\nzz\r\n`),
  'sends gzip that was not asked for': says(
    `${eventStreamHead}content-encoding: gzip\r\n\r\n`,
    Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3),
  ),
} as const satisfies Record<string, RawScript>;

/** Ways in which a chunked answer breaks off after its first words. */
export const rawBreaks = {
  'breaks its chunks': 'zz\r\n',
  'ends inside a chunk': 'ff\r\ndata: {',
  'ends without the last chunk': '',
} as const;

/** Sends the first words and, once they were read, bytes that break the answer. */
export const breaksAfterWords =
  (broken: string, wordsRead: Promise<void>): RawScript =>
  (socket) => {
    socket.write(`${eventStreamHead}transfer-encoding: chunked\r\n\r\n${chunked(firstWords)}`);
    void wordsRead.then(() => socket.end(broken));
  };
