import { crc32 } from 'node:zlib';

/**
 * The framing of AWS event streams (`application/vnd.amazon.eventstream`): lengths and a checksum, headers,
 * payload, checksum of all. Source: the Smithy specification, amazon-eventstream.
 */
function eventStreamMessage(headers: Record<string, string>, payload: string): Uint8Array {
  const head = Buffer.concat(Object.entries(headers).map(([name, value]) => headerBytes(name, value)));
  const body = Buffer.from(payload);
  const prelude = Buffer.alloc(8);
  prelude.writeUInt32BE(12 + head.length + body.length + 4, 0);
  prelude.writeUInt32BE(head.length, 4);
  const start = Buffer.concat([prelude, checksum(prelude), head, body]);
  return Buffer.concat([start, checksum(start)]);
}

function checksum(bytes: Uint8Array): Buffer {
  const four = Buffer.alloc(4);
  four.writeUInt32BE(crc32(bytes));
  return four;
}

const textType = 7;

function headerBytes(name: string, value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(Buffer.byteLength(value));
  return Buffer.concat([
    Buffer.from([Buffer.byteLength(name)]),
    Buffer.from(name),
    Buffer.from([textType]),
    length,
    Buffer.from(value),
  ]);
}

/** One event of the model, as Bedrock wraps it: base64 inside JSON, with padding of random length. */
export const chunkFrame = (event: { type: string }): Uint8Array =>
  eventStreamMessage(
    { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' },
    JSON.stringify({
      bytes: Buffer.from(JSON.stringify(event)).toString('base64'),
      p: 'abcdefghijkl'.slice(event.type.length % 12),
    }),
  );

export const exceptionFrame = (type: string, message: string): Uint8Array =>
  eventStreamMessage(
    { ':exception-type': type, ':content-type': 'application/json', ':message-type': 'exception' },
    JSON.stringify({ message }),
  );
