/** PDFs as programs write them, and hostile ones. A character stands for a byte. */
import { deflateSync } from 'node:zlib';

const flate = (text: string): string => deflateSync(Buffer.from(text, 'latin1')).toString('latin1');

/** An object with a compressed stream. */
export const packed = (dict: string, data: string): string => {
  const bytes = flate(data);
  return `<< ${dict} /Filter /FlateDecode /Length ${bytes.length} >>\nstream\r\n${bytes}\nendstream`;
};

/** The objects by number, in an object stream. */
export function objectStream(objects: Record<number, string>): string {
  let at = 0;
  const heads = Object.entries(objects).map(([number, text]) => {
    const head = `${number} ${at}`;
    at += text.length + 1;
    return head;
  });
  const head = `${heads.join(' ')} `;
  const count = `/Type /ObjStm /N ${heads.length} /First ${head.length}`;
  return packed(count, head + Object.values(objects).join('\n'));
}

/** A file of these objects, followed by any text. */
export const pdfOf = (objects: Record<number, string>, rest = ''): string =>
  `%PDF-1.7\n${Object.entries(objects)
    .map(([number, text]) => `${number} 0 obj\n${text}\nendobj\n`)
    .join('')}${rest}trailer << /Root 1 0 R >>\n%%EOF`;

export const catalog = '<< /Type /Catalog /Pages 2 0 R >>';
export const tree = (kids: readonly number[]): string =>
  `<< /Type /Pages /Count ${kids.length} /Kids [${kids.map((kid) => `${kid} 0 R`).join(' ')}] >>`;
export const page = '<< /Type /Page /Parent 2 0 R >>';
export const numbers = (from: number, count: number): number[] =>
  Array.from({ length: count }, (_, at) => from + at);

/** A file as every current program writes it: structure and text are compressed. */
export function printed(pages: number, text: string): string {
  const kids = numbers(100, pages);
  const contents = kids.map((kid) => [kid + 10_000, packed('', `BT /F1 12 Tf [(${text})] TJ ET`)]);
  const objects = kids.map((kid) => [kid, `<< /Type /Page /Parent 2 0 R /Contents ${kid + 10_000} 0 R >>`]);
  const structure = { 1: catalog, 2: tree(kids), ...(Object.fromEntries(objects) as Record<number, string>) };
  return pdfOf({ 9: objectStream(structure), ...(Object.fromEntries(contents) as Record<number, string>) });
}

/** The same file after it was saved again: one page is outside, and all others are hidden in object streams. */
export const savedAgain = (pages: number): string =>
  pdfOf({
    100: page,
    9: objectStream({ 1: catalog, 2: tree(numbers(100, pages)), ...pagesFrom(100, pages) }),
  });

const pagesFrom = (from: number, count: number): Record<number, string> =>
  Object.fromEntries(numbers(from, count).map((number) => [number, page]));

export const base64 = (bytes: string): string => Buffer.from(bytes, 'latin1').toString('base64');
export const dataUrl = (bytes: string, type = 'application/pdf'): string =>
  `data:${type};base64,${base64(bytes)}`;
