import { describe, expect, it } from 'vitest';
import { estimateInput, hasMedia } from '../../../../shared/billing/estimate/input-tokens.ts';
import { mediaEstimator } from '../../../../shared/billing/estimate/media-tokens.ts';
import { pictureSize } from '../../../../shared/billing/estimate/picture-size.ts';

const encoded = (type: string, bytes: number[]): string =>
  `data:image/${type};base64,${btoa(String.fromCharCode(...bytes, ...Array<number>(24).fill(0)))}`;
const text = (characters: string): number[] => Array.from(characters, (each) => each.charCodeAt(0));

const png = (width: number, height: number): string => {
  const size = [width, height].flatMap((side) => [0, 0, side >> 8, side & 255]);
  return encoded('png', [...text('\u0089PNG\r\n\u001a\n'), 0, 0, 0, 13, ...text('IHDR'), ...size]);
};

describe('the size of a picture', () => {
  it.each([
    ['PNG', png(1024, 768)],
    ['GIF', encoded('gif', [...text('GIF89a'), 0, 4, 0, 3])],
    ['JPEG', encoded('jpeg', [0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xc2, 0, 17, 8, 3, 0, 4, 0])],
    ['lossy WebP', encoded('webp', [...text('RIFF....WEBPVP8 ....'), 0, 0, 0, 0x9d, 1, 0x2a, 0, 4, 0, 3])],
    ['lossless WebP', encoded('webp', [...text('RIFF....WEBPVP8L....'), 0x2f, 0xff, 0xc3, 0xbf, 0])],
    ['extended WebP', encoded('webp', [...text('RIFF....WEBPVP8X....'), 0, 0, 0, 0, 0xff, 3, 0, 0xff, 2, 0])],
  ])('is read from the header of a %s', (_format, url) => {
    expect(pictureSize(url)).toEqual({ width: 1024, height: 768 });
  });

  it.each([
    'https://a.example.com/x.png',
    'data:image/png;base64,!!!',
    encoded('bmp', text('BM')),
    encoded('png', []),
  ])('is unknown in %s', (url) => expect(pictureSize(url)).toBeUndefined());
});

describe('content beside text', () => {
  const picture = (url: string, detail?: string) => ({ type: 'image_url', image_url: { url, detail } });
  const pdf = `%PDF-1.4 ${'<< /Type /Page >> '.repeat(3)} << /Type /Pages /Count 3 >>`;
  const file = (data: string) => ({
    type: 'file',
    file: { file_data: `data:application/pdf;base64,${btoa(data)}` },
  });
  it.each([
    ['a picture: the largest formula, and tiles', picture(png(1024, 1024)), undefined, 1659, 765],
    [
      'a picture at low detail: vendors without detail count all of it',
      picture(png(1024, 1024), 'low'),
      undefined,
      1659,
      85,
    ],
    [
      'a picture of unknown size: the most of any vendor',
      picture('https://a.example.com/x'),
      undefined,
      4784,
      765,
    ],
    ['a picture where the rule says it', picture(png(9, 9)), 1_000, 1000, 1000],
    ['a PDF by its pages', file(pdf), undefined, 3 * 4600, 3 * 2000],
    [
      'a PDF whose pages are hidden, by its bytes',
      file(`%PDF-1.7 ${'x'.repeat(10_000)}`),
      undefined,
      10 * 4600,
      20_000,
    ],
    [
      'a file of another server',
      { type: 'file', file: { file_url: 'https://a.example.com/x' } },
      undefined,
      460_000,
      200_000,
    ],
    [
      'sound by its bytes',
      { type: 'input_audio', input_audio: { format: 'wav', data: 'A'.repeat(64_000) } },
      undefined,
      192,
      10,
    ],
  ])('%s', (_name, part, imageTokens, above, unbiased) => {
    expect(mediaEstimator(imageTokens)(part)).toEqual({ above, unbiased });
  });

  it('has an estimate for the request, and a path where nobody knows its size', () => {
    const messages = [{ role: 'user' as const, content: [picture(png(1024, 1024)), { type: 'hologram' }] }];
    const request = { model: 'm', messages };
    expect(hasMedia(request)).toBe(true);
    const estimate = estimateInput({ request, unknown: {} }, mediaEstimator(undefined));
    expect(estimate).toMatchObject({ above: 1679, unbiased: 768, unknownPart: 'messages[0].content[1]' });
  });
});
