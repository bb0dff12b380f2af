import { chunkFrame } from './event-stream.ts';
import { lies, type Lie } from './lies.ts';
import { isObject, type Vendor, type VendorReply } from './script/vendor.ts';

/** The double, which tells the lie that the text of a request names. */
export const lying = (vendor: Vendor): Vendor => ({
  ...vendor,
  async serve(request) {
    const reply = await vendor.serve(request);
    const name = /\blie=([a-z-]+)/.exec(request.text)?.[1];
    const lie = name === undefined ? undefined : lies[name];
    return lie ? alteredReply(reply, lie) : reply;
  },
});

const alteredReply = (reply: VendorReply, lie: Lie): VendorReply => ({
  ...reply,
  frames: reply.frames.map((frame) =>
    typeof frame === 'string' ? alteredText(frame, lie) : alteredBytes(frame, lie),
  ),
});

const alteredText = (frame: string, lie: Lie): string =>
  frame
    .split('\n')
    .map((line) => {
      const [, prefix = '', json] = /^(data: )?(\{.*\})$/.exec(line) ?? [];
      return json === undefined ? line : prefix + JSON.stringify(altered(JSON.parse(json), lie));
    })
    .join('\n');

/** Bedrock's framing: lengths, checksum, headers, then JSON with the event in base64. */
function alteredBytes(frame: Uint8Array, lie: Lie): Uint8Array {
  const bytes = Buffer.from(frame);
  const { bytes: event } = JSON.parse(
    bytes.subarray(12 + bytes.readUInt32BE(4), bytes.length - 4).toString(),
  ) as { bytes?: string };
  if (event === undefined) return frame;
  return chunkFrame(altered(JSON.parse(Buffer.from(event, 'base64').toString()), lie) as { type: string });
}

/** Every `usage` in a value, however deep, that is an object. */
function altered(value: unknown, lie: Lie): unknown {
  if (Array.isArray(value)) return value.map((each) => altered(each, lie));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [
      name,
      name === 'usage' && isObject(part) ? lie.tell(part) : altered(part, lie),
    ]),
  );
}
