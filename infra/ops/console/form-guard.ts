/** Reads a form that this session made, and no other: by its token, its size and the number of its fields. */
import { formBytesMax, tooLarge, type Refusal } from './guard.ts';
import { isSame } from './same-text.ts';
import type { Identity } from './visit/visit.ts';

const fieldsMax = 200;

/** The fields of a form that this session made. The last of several with one name counts. */
export async function formOf(
  request: Request,
  { formToken }: Identity,
): Promise<Record<string, string> | Refusal> {
  const text = await boundedText(request);
  if (text === undefined) return tooLarge;
  const fields = [...new URLSearchParams(text)];
  if (fields.length > fieldsMax) return tooLarge;
  const form = Object.fromEntries(fields.map(([name, value]) => [name, value.trim()]));
  if (!isSame(form['form_token'] ?? '', formToken))
    return {
      status: 403,
      why: 'This form is of another session. Nothing was written: load the page again, then repeat.',
    };
  return form;
}

export const isRefusal = (form: Record<string, string> | Refusal): form is Refusal =>
  typeof form['status'] === 'number';

async function boundedText(request: Request): Promise<string | undefined> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of request.body ?? []) {
    bytes += piece.byteLength;
    if (bytes > formBytesMax) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}
