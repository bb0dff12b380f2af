import { describe, expect, it } from 'vitest';
import { estimateInput, findMedia } from '../../../../shared/billing/estimate/input-tokens.ts';
import { inflateWithZlib } from '../../../../shared/adapters/system/node-ports.ts';
import { createMediaReader, readPictureSize } from '../../../../shared/billing/estimate/media-tokens.ts';
import type { ChatContentPart } from '../../../../shared/wire/canonical-call.ts';
import { base64, dataUrl, printed, savedAgain } from '../../../support/pdf-files.ts';

const encoded = (type: string, bytes: number[]): string =>
  `data:image/${type};base64,${btoa(String.fromCharCode(...bytes, ...Array<number>(24).fill(0)))}`;
const mediaEstimator = createMediaReader(inflateWithZlib);
const text = (characters: string): number[] => Array.from(characters, (each) => each.charCodeAt(0));

const png = (width: number, height: number): string => {
  const size = [width, height].flatMap((side) => [0, 0, side >> 8, side & 255]);
  return encoded('png', [...text('\u0089PNG\r\n\u001a\n'), 0, 0, 0, 13, ...text('IHDR'), ...size]);
};

const frame = [0xff, 0xc2, 0, 8, 8, 3, 0, 4, 0, 0];
const fill = Array<number>(9).fill(0xff);
const jpeg = (...segments: number[]): string =>
  encoded('jpeg', [0xff, 0xd8, ...segments, 0xff, 0xda, ...Array<number>(8).fill(0)]);

const small = [0xff, 0xc0, 0, 8, 8, 0, 1, 0, 1, 0];
const webp = (head: string, ...size: number[]): string =>
  encoded('webp', [...text(`RIFF....WEBP${head}....`), ...size]);

describe('the size of a picture', () => {
  it.each([
    ['PNG', png(1024, 768)],
    ['JPEG', jpeg(0xff, 0xe0, 0, 4, 1, 2, ...frame)],
    ['JPEG with fill bytes', jpeg(0xff, 0xff, 0xff, 0xe0, 0, 4, 1, 2, ...fill, ...frame)],
    ['JPEG with a small frame before the large one', jpeg(...small, ...frame)],
    ['JPEG with a small frame behind the large one', jpeg(...frame, ...small)],
    ['JPEG with an embedded JPEG', jpeg(0xff, 0xe1, 0, 12, ...frame, ...frame)],
    ['JPEG with an invalid marker', jpeg(0, 1, 2, ...frame)],
    ['JPEG with markers only', jpeg(0xff, 0xd0, 0xff, 1, ...frame)],
    ['lossy WebP', webp('VP8 ', 0, 0, 0, 0x9d, 1, 0x2a, 0, 4, 0, 3)],
    ['lossless WebP', webp('VP8L', 0x2f, 0xff, 0xc3, 0xbf, 0)],
    ['extended WebP', webp('VP8X', 0, 0, 0, 0, 0xff, 3, 0, 0xff, 2, 0)],
  ])('is read from the header of a %s', (_format, url) => {
    expect(readPictureSize(url)).toEqual({ width: 1024, height: 768 });
  });

  it.each([
    'https://a.example.com/x.png',
    'data:image/png;base64,!!!',
    encoded('bmp', text('BM')),
    encoded('png', []),
    encoded('png', [...text('\u0089PNG\r\n\u001a\n'), 0, 0, 0, 13, ...text('CgBI')]),
    jpeg(0xff, 0xe0, 0, 0),
    encoded('gif', [...text('GIF89a'), 0, 4, 0, 3, 0, 0, 0, 0x2c]),
  ])('is unknown in %s', (url) => expect(readPictureSize(url)).toBeUndefined());
});

const file_url = { type: 'file', file: { file_url: 'https://a.example.com/x' } };

describe('content beside text', () => {
  const picture = (url: string, detail?: string) => ({ type: 'image_url', image_url: { url, detail } });
  const file = (data: string) => ({ type: 'file', file: { file_data: data } });
  const wav = (samples: number, { form = 1, bits = 16, said = samples * 2, block = 2 } = {}): string => {
    const header = Buffer.alloc(44);
    header.write('RIFF____WAVEfmt ', 'latin1');
    header.writeUInt32LE(16, 16);
    header.writeUInt16LE(form, 20);
    header.writeUInt16LE(1, 22);
    header.writeUInt32LE(samples, 24);
    header.writeUInt32LE(said, 28);
    header.writeUInt16LE(block, 32);
    header.writeUInt16LE(bits, 34);
    header.write('data', 36, 'latin1');
    return header.toString('latin1') + '\0'.repeat(320_000 - 44);
  };
  const sound = (bytes: string, format = 'wav') => ({
    type: 'input_audio',
    input_audio: { format, data: base64(bytes) },
  });
  const mp3 = (second: string) =>
    sound(`ID3\u0004\0\0\0\0\0\u0002__\u00ff\u00fb${second}${'x'.repeat(63_985)}`, 'mp3');
  const window = 1_050_000;
  const pdf = dataUrl(printed(3, 'words'));
  const threePages = [3 * 4_600, 3 * 2_000] as const;
  it.each<[string, ChatContentPart, above: number, unbiased: number, imageTokens?: number]>([
    ['a picture: the largest formula, and tiles', picture(png(1024, 1024)), 1659, 765],
    ['a picture at low detail: vendors without it count all', picture(png(1024, 1024), 'low'), 1659, 85],
    ['a picture of unknown size: the most of any vendor', picture('https://a.example.com/x'), 4784, 765],
    ['a picture in a place that the rule names', picture(png(9, 9)), 1000, 1000, 1_000],
    ['a PDF by its pages', file(pdf), ...threePages],
    ['a PDF under another name', file(dataUrl(printed(3, 'words'), 'text/plain')), ...threePages],
    [
      'a PDF that is called a picture',
      picture(dataUrl(printed(3, 'words'), 'image/png')),
      ...threePages,
      765,
    ],
    ['a PDF behind other bytes', file(dataUrl(`${'x'.repeat(1_000)}${printed(3, 'words')}`)), ...threePages],
    ['a PDF in lines', file(pdf.replaceAll(/(.{70})/g, '$1\r\n')), ...threePages],
    ['a PDF of 600 pages in 2 KB', file(dataUrl(savedAgain(600))), window, window],
    ['a PDF that cannot be read', file(dataUrl('%PDF-1.7 nothing')), window, 200_000],
    [
      'base64 that some read and some do not',
      file(dataUrl('%PDF-1.7').replace('JV', 'J-V')),
      window,
      200_000,
    ],
    ['a text', file(dataUrl('a,b\n'.repeat(250), 'text/csv')), 2_300, 1_000],
    ['a text that is not encoded', file(`data:text/plain,${'word '.repeat(200)}`), 2_300, 1_000],
    ['an archive', file(dataUrl('PK\u0003\u0004'.repeat(100), 'application/zip')), 440_000, 200_000],
    ['a file of another server', file_url, window, 200_000],
    ['sound by the rate in its header', sound(wav(16_000)), 320, 100],
    ['sound of one sample a second', sound(wav(1)), window, window],
    ['sound whose rates differ', sound(wav(8_000, { said: 4_000_000, block: 200 })), 640, 200],
    ['sound that is compressed', sound(wav(16_000, { form: 0x55 })), window, 200_000],
    ['sound under another name', sound(`OggS${'\0'.repeat(96)}`, 'mp3'), 110_000, 110_000],
    ['MP3 by its bytes', mp3('\u0090'), 64 * 32, 80],
    ['MP3 whose frames omit their rate', mp3('\0'), window, 200_000],
  ])('%s', (_name, part, above, unbiased, imageTokens) => {
    const request = { model: 'm', messages: [{ role: 'user' as const, content: [part] }] };
    const found = [...findMedia({ request, unknown: {} })].map(mediaEstimator(imageTokens));
    expect(found).toEqual([{ above, unbiased }]);
  });

  it.each([
    [['image'], 2],
    // The name has no position, because another message may have sent what this one did not.
    [['messages[].images'], 2],
    [['messages[].images[]'], 2],
    [['messages[].image', 'messages[].content[].image_url.u'], 2],
    [['other', 'messages'], 0],
  ])('is not counted in the dropped fields %j', (dropped, count) => {
    const content = [picture('https://a.example.com/x.png')];
    const messages = [{ role: 'user' as const, content, images: ['https://a.example.com/y.png'] }];
    expect([...findMedia({ request: { model: 'm', messages }, unknown: {}, dropped })]).toHaveLength(count);
  });

  it('is not counted for messages that were not sent, but counts for others of the same path', () => {
    const messages = ['x', 'y'].map((name) => ({
      role: 'user' as const,
      content: 'hi',
      images: [`https://a.example.com/${name}.png`],
    }));
    const call = { request: { model: 'm', messages }, unknown: {} };
    const unsentMedia = [...findMedia(call)].filter(({ value }) => value?.includes('x.png'));
    expect([...findMedia({ ...call, unsentMedia, dropped: ['messages[].images[]'] })]).toMatchObject([
      { value: 'https://a.example.com/y.png' },
    ]);
  });

  it('has an estimate for the request, and a path for content of unknown size', () => {
    const messages = [{ role: 'user' as const, content: [picture(png(1024, 1024)), { type: 'hologram' }] }];
    const request = { model: 'm', messages };
    const estimate = estimateInput({ request, unknown: {} }, mediaEstimator(undefined));
    expect(estimate).toMatchObject({
      above: 1679,
      unbiased: 768,
      unknownContentPart: 'messages[0].content[1]',
    });
  });
});
