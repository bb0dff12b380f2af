/** Upstreams that report wrong counts: `lie=input-zero` in the text of a call to a vendor's double requests one. */
import { encodeChunkFrame } from '../../infra/local/vendors/bedrock.ts';
import { isRecord } from '../../shared/wire/json.ts';
import { type Vendor, type VendorReply } from '../../infra/local/vendors/vendor.ts';

/** The double, with the wrong count that the text of a request names. */
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

/** Nearly all frames have no usage. */
const hasUsage = (text: string): boolean => text.includes('"usage"');

const alteredText = (frame: string, lie: Lie): string =>
  !hasUsage(frame)
    ? frame
    : frame
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
  const json = Buffer.from(event ?? '', 'base64').toString();
  return hasUsage(json) ? encodeChunkFrame(altered(JSON.parse(json), lie) as { type: string }) : frame;
}

/** All `usage` objects in a value, at any depth. */
function altered(value: unknown, lie: Lie): unknown {
  if (Array.isArray(value)) return value.map((each) => altered(each, lie));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [
      name,
      name === 'usage' && isRecord(part) ? lie.tell(part) : altered(part, lie),
    ]),
  );
}

interface Lie {
  /** Changes a usage object of any vendor, and returns the result. */
  tell(usage: Usage): unknown;
  /** The sent count could be true, so a relay can't detect it. */
  plausible?: true;
}

type Usage = Record<string, unknown>;
type Change = (count: number) => unknown;

const fieldsOf = {
  input: ['prompt_tokens', 'input_tokens'],
  output: ['completion_tokens', 'output_tokens'],
};
type Side = keyof typeof fieldsOf;

/** Vendors' totals are the sums of their parts, so a wrong part changes the total too. */
function changed(usage: Usage, side: Side, change: Change): Usage {
  const { total_tokens: _, ...rest } = usage;
  const counts = Object.entries(rest).map(([name, value]) => {
    if (!fieldsOf[side].includes(name) || typeof value !== 'number') return [name, value];
    return [name, change(value)];
  });
  return Object.fromEntries(counts) as Usage;
}

const changes: Record<string, { change: Change; plausible?: true }> = {
  zero: { change: () => 0 },
  one: { change: () => 1 },
  tenth: { change: (count) => Math.round(count / 10) },
  half: { change: (count) => Math.round(count / 2) },
  less: { change: (count) => Math.round(count * 0.85), plausible: true },
  more: { change: (count) => Math.round(count * 1.2), plausible: true },
  tenfold: { change: (count) => 10 * count },
  million: { change: () => 1e6 },
  huge: { change: () => 1e12 },
  endless: { change: () => 1e300 },
  negative: { change: (count) => -count },
  'minus-one': { change: () => -1 },
  null: { change: () => null },
  absent: { change: () => undefined },
  word: { change: () => 'many' },
  digits: { change: String, plausible: true },
  'huge-digits': { change: () => '999999999999' },
  fraction: { change: (count) => count + 0.4, plausible: true },
  list: { change: (count) => [count] },
  object: { change: (count) => ({ count }) },
  true: { change: () => true },
};

const partLies = (side: Side): [string, Lie][] =>
  Object.entries(changes).map(([name, { change, plausible }]) => [
    `${side}-${name}`,
    { tell: (usage) => changed(usage, side, change), ...(plausible && { plausible }) },
  ]);

const both =
  (change: Change): Lie['tell'] =>
  (usage) =>
    changed(changed(usage, 'input', change), 'output', change);

const cacheSays =
  (cached: unknown): Lie['tell'] =>
  (usage) => ({
    ...usage,
    prompt_tokens_details: { cached_tokens: cached },
    ...('input_tokens' in usage && { input_tokens_details: { cached_tokens: cached } }),
  });

export const lies: Record<string, Lie> = {
  ...Object.fromEntries([...partLies('input'), ...partLies('output')]),
  'all-zero': { tell: both(() => 0) },
  'all-huge': { tell: both(() => 1e12) },
  'all-null': { tell: both(() => null) },
  'no-usage': { tell: () => undefined },
  'null-usage': { tell: () => null },
  'empty-usage': { tell: () => ({}) },
  'text-usage': { tell: () => 'none' },
  'total-of-nothing': { tell: (usage) => ({ ...usage, total_tokens: 0 }), plausible: true },
  'negative-total': { tell: (usage) => ({ ...usage, total_tokens: -5 }), plausible: true },
  'cache-of-words': { tell: cacheSays('all'), plausible: true },
};
