import { deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { inflateWithZlib } from '../../../../shared/adapters/system/node-ports.ts';
import { inflatedMax, measurePdf } from '../../../../shared/billing/estimate/pdf-size.ts';
import {
  catalog,
  numbers,
  objectStream,
  packed,
  page,
  pdfOf,
  printed,
  savedAgain,
  tree,
} from '../../../support/pdf-files.ts';

const sizeOf = (written: string) => measurePdf(written, inflateWithZlib, inflatedMax).size;
const shows = (text: string): string => `BT (${text}) Tj ET`;
const filled = 'x'.repeat(50_000);
const on = (contents: string, more = ''): string => `<< /Type /Page /Contents ${contents} ${more} >>`;
const forms = (names: string): string => `/Resources << /XObject << ${names} >> >>`;
const form = (data: string, more = ''): string => packed(`/Subtype /Form ${more}`, data);
/** ASCII85: five characters for four bytes. */
const ascii85 = (text: string): string => {
  const bytes = Buffer.from(text.padEnd(Math.ceil(text.length / 4) * 4, '\0'), 'latin1');
  let signs = '';
  for (let at = 0; at < bytes.length; at += 4) {
    let group = bytes.readUInt32BE(at);
    let five = '';
    for (let sign = 0; sign < 5; sign += 1) {
      five = String.fromCharCode((group % 85) + 33) + five;
      group = Math.floor(group / 85);
    }
    signs += five;
  }
  return `${signs}~>`;
};

/** A file with this page tree, and one whose only page has this content. */
const file = (objects: Record<number, string>, kids = [3], tail = ''): string =>
  pdfOf({ 1: catalog, 2: tree(kids), ...objects }, tail);
const showing = (content: string, more: Record<number, string> = {}, attributes = ''): string =>
  file({ 3: on('4 0 R', attributes), 4: packed('', content), ...more });
const font = (attributes: string): Record<number, string> => ({ 6: `<< /Type /Font ${attributes} >>` });
const withFont = '/Resources << /Font << /F 6 0 R >> >>';
const letters = `/Encoding << /Differences [97 /${'a_'.repeat(29)}uni0041] >>`;
const words = { 7: packed('', `1 beginbfchar <01> <${'0041'.repeat(30)}> endbfchar`) };
const drawsText = forms('/T 5 0 R');
const text = form(shows(filled));
const same = numbers(100, 50).flatMap((at): [number, string][] => [
  [at, on('4 0 R', forms(`/F ${at + 100} 0 R`))],
  [at + 100, form('/F Do', forms(`/F ${at + 200} 0 R`))],
  [at + 200, form(shows('x'.repeat(4_000)))],
]);
const inAscii85 = `<< /Filter /ASCII85Decode /Length 9 >> stream\n${ascii85(`<${'41'.repeat(20_000)}> Tj`)}\nendstream`;

describe('the size of a PDF', () => {
  it.each<[string, string, number, number]>([
    ['plain', file({ 3: page, 4: page }, [3, 4]), 2, 6_000],
    ['with compressed structure and text', printed(3, 'words '.repeat(400)), 3, 9_000],
    ['whose page has more text than usual', showing(shows(filled)), 1, 50_000],
    ['saved again, with all pages but one in a stream of objects', savedAgain(600), 600, 1_800_000],
    ['with one page many times', file({ 3: page }, Array<number>(300).fill(3)), 300, 900_000],
    [
      'with nodes many times',
      file({ 5: tree([6, 6, 6, 6]), 6: tree([3, 3, 3, 3]), 3: page }, [5, 5, 5, 5]),
      64,
      192_000,
    ],
    [
      'whose pages share one text',
      file({ 3: on('5 0 R'), 4: on('[5 0 R 5 0 R]'), 5: packed('', shows(filled)) }, [3, 4]),
      2,
      150_000,
    ],
    ['that draws one text many times', showing('/T Do '.repeat(20), { 5: text }, drawsText), 1, 1_000_000],
    [
      'that draws what draws',
      showing(
        '/A Do '.repeat(10),
        { 5: form('/B Do '.repeat(10), forms('/B 6 0 R')), 6: text },
        forms('/A 5 0 R'),
      ),
      1,
      5_000_000,
    ],
    [
      'whose forms draw each other',
      showing(
        `/A Do ${'/B Do '.repeat(20)}`,
        { 5: form(`${shows(filled)} /B Do`), 6: form('/A Do') },
        forms('/A 5 0 R /B 6 0 R'),
      ),
      1,
      1_050_000,
    ],
    [
      'whose forms call what they draw by the same names',
      file({ ...Object.fromEntries(same), 4: packed('', '/F Do') }, numbers(100, 50)),
      50,
      200_000,
    ],
    [
      'whose font says many letters for each code',
      showing(shows(filled), font(letters), withFont),
      1,
      500_000,
    ],
    [
      'whose font says a word for each code',
      showing(shows(filled), { ...font('/ToUnicode 7 0 R'), ...words }, withFont),
      1,
      500_000,
    ],
    [
      'that draws behind the data of a picture',
      showing(`BI ID ( EI ${'/T Do '.repeat(20)}`, { 5: text }, drawsText),
      1,
      1_000_123,
    ],
    ['in hex digits and ASCII85', file({ 3: on('4 0 R'), 4: inAscii85 }), 1, 20_000],
    [
      'whose names are written in codes',
      pdfOf({
        1: '<< /Type /Catalog /P#61ges 2 0 R >>',
        2: tree([3, 3]).replace('/Kids', '/K#69ds'),
        3: page,
      }),
      2,
      6_000,
    ],
    [
      'with a version that nobody asked for',
      file({ 3: page }, [3, 3, 3], `2 0 obj ${tree([3])} endobj\n`),
      3,
      9_000,
    ],
    ['whose count is a lie', file({ 2: tree([3, 3]).replace('/Count 2', '/Count 1'), 3: page }), 2, 6_000],
  ])('%s', (_name, written, pages, characters) => {
    expect(sizeOf(written)).toEqual({ pages, characters });
  });

  const marks = '/Resources << /Properties << /P 5 0 R >> >>';
  const hidden = objectStream({ 2: tree([3, 3]) }).replace('stream\r', 'stream \r');
  it.each([
    ['no page tree', '%PDF-1.7 nothing'],
    ['encrypted', printed(3, 'x').replace('/Root', '/Encrypt 9 0 R /Root')],
    ['encrypted in other letters', printed(3, 'x').replace('/Root', '/Encr#79pt 9 0 R /Root')],
    ['a stream of objects that only some find', file({ 3: page, 9: hidden })],
    ['a page tree without a number', file({ 3: page }, [3], `1 0 obj << /Pages ${tree([3, 3])} >> endobj\n`)],
    [
      'marks that say what to read instead',
      showing('/Span /P BDC (x) Tj EMC ', { 9: objectStream({ 5: `<< /ActualText (${filled}) >>` }) }, marks),
    ],
    ['a page that is nowhere', file({ 3: page }, [3, 4])],
    ['pages that lead to themselves', file({}, [2])],
    ['another filter', file({ 3: on('4 0 R'), 4: '<< /Filter /LZWDecode >> stream\nx\nendstream' })],
    ['a predictor', file({ 3: on('4 0 R'), 4: packed('/DecodeParms << /Predictor 12 >>', 'x') })],
    ['damaged', file({ 3: on('4 0 R'), 4: packed('', shows(filled)).slice(0, 90) })],
    ['more than may be inflated', showing(' '.repeat(inflatedMax + 1))],
    ['a key twice', file({ 2: tree([3]).replace('>>', '/Kids [3 0 R 3 0 R] >>'), 3: page })],
    ['an object that is not found as others are', file({ 3: page }, [3], '2 % \n 0 obj << >> endobj\n')],
    ['nested without end', file({ 3: '['.repeat(100_000) })],
    [
      'a chain of nodes without end',
      pdfOf({
        1: catalog,
        9: objectStream(Object.fromEntries(numbers(2, 30_000).map((at) => [at, tree([at + 1])]))),
      }),
    ],
  ])('is unknown with %s, and nothing more is inflated for the call', (_name, written) => {
    expect(measurePdf(written, inflateWithZlib, inflatedMax)).toEqual({
      size: undefined,
      inflated: inflatedMax,
    });
  });

  const many = numbers(1, 40_000);
  const asking = numbers(1_000, 20_000);
  /** Slow inputs if anything is read more than once. */
  it.each<[string, string]>([
    [
      'names',
      showing(
        many
          .map((name) => `/N${name} Do `)
          .join('')
          .repeat(10),
        { 5: form('x') },
        forms(many.map((name) => `/N${name} 5 0 R`).join(' ')),
      ),
    ],
    ['streams', printed(600, 'x')],
    [
      'versions of one object that many ask for',
      file(
        {},
        asking,
        '8 0 obj [] '.repeat(100_000) +
          asking.map((at) => `${at} 0 obj << /Contents 8 0 R /XObject << /F 8 0 R >> >>`).join('\n'),
      ),
    ],
    ['objects', '%PDF'.padEnd(7_000_000, ' 1 0 obj 1')],
    ['signs that open', showing('(<[/'.repeat(1_000_000))],
    ['blanks and comments', file({ 3: `${' '.repeat(1_000_000)}${'%\n'.repeat(500_000)}${page}` })],
  ])('is found to be known or unknown despite many %s', (_name, written) => {
    const { size, inflated } = measurePdf(written, inflateWithZlib, inflatedMax);
    expect(inflated).toBeLessThan(2 * inflatedMax);
    expect(size === undefined || size.pages > 0).toBe(true);
  });

  it('is the same whatever bytes follow a stream', () => {
    const data = deflateSync(Buffer.from(shows(filled))).toString('latin1');
    const stream = `<< /Filter /FlateDecode /Length 3 >> stream\n${data} endstream`;
    expect(sizeOf(file({ 3: on('4 0 R'), 4: stream }))?.characters).toBe(50_000);
  });
});
