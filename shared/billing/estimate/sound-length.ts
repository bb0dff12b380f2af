/** How long a recording is, from its bytes: by the rate in its header, and where that has none by the lowest there is. */

export interface SoundSeconds {
  most: number;
  usual: number;
}

/** Bytes of a second of MP3: no rate of its frames has fewer. */
const mp3Bytes = { fewest: 1_000, usual: 8_000 };
/** Whole samples, as integers and as floats: other forms in a WAV are compressed. */
const wholeSamples = new Set([1, 3]);

/** Undefined: the bytes do not say. */
export function soundSeconds(bytes: string): SoundSeconds | undefined {
  const rate = bytes.startsWith('RIFF') && bytes.slice(8, 12) === 'WAVE' ? wavRate(bytes) : mp3Rate(bytes);
  return rate && { most: bytes.length / rate.fewest, usual: bytes.length / rate.usual };
}

const u16 = (bytes: string, at: number): number => bytes.charCodeAt(at) + bytes.charCodeAt(at + 1) * 256;
const u32 = (bytes: string, at: number): number => u16(bytes, at) + u16(bytes, at + 2) * 65_536;

/** The bytes of a second by the chunk `fmt `. Of what it says in several ways the lowest counts, since decoders differ. */
function wavRate(bytes: string): { fewest: number; usual: number } | undefined {
  const formats: number[] = [];
  for (
    let at = 12;
    at + 24 <= bytes.length && formats.length < 8;
    at += 8 + u32(bytes, at + 4) + (u32(bytes, at + 4) % 2)
  ) {
    if (bytes.slice(at, at + 4) === 'fmt ') formats.push(at + 8);
    // What a recording has behind its sound is not its form.
    if (bytes.slice(at, at + 4) === 'data') break;
  }
  const rates = formats.map((at) => {
    // In the extensible form the code of the samples stands further behind.
    const form = u16(bytes, at) === 0xfffe ? u16(bytes, at + 24) : u16(bytes, at);
    const [channels, samples, said, block, bits] = [at + 2, at + 4, at + 8, at + 12, at + 14];
    const perSecond = [
      u32(bytes, said),
      u32(bytes, samples) * u16(bytes, block),
      (u32(bytes, samples) * u16(bytes, channels) * u16(bytes, bits)) / 8,
    ];
    return wholeSamples.has(form) ? Math.min(...perSecond) : 0;
  });
  const rate = Math.min(...rates);
  return rates.length > 0 && rate > 0 ? { fewest: rate, usual: rate } : undefined;
}

/** Behind its tag a frame begins. One whose rate is not said (`free`) may be of any length. */
function mp3Rate(bytes: string): typeof mp3Bytes | undefined {
  const isTagged = bytes.startsWith('ID3');
  const tag = [6, 7, 8, 9].reduce((size, at) => size * 128 + (bytes.charCodeAt(at) & 127), 0);
  const at = isTagged ? 10 + tag : 0;
  const isFrame = bytes.charCodeAt(at) === 0xff && (bytes.charCodeAt(at + 1) & 0xe6) === 0xe2;
  return isFrame && bytes.charCodeAt(at + 2) >= 16 ? mp3Bytes : undefined;
}
