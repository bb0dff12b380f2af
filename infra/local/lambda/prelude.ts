/**
 * Status and headers of a streamed answer. The stream has them as JSON, then eight zero bytes, then the body.
 */
export interface ResponseHead {
  statusCode?: number;
  headers?: Record<string, string | number | boolean>;
  cookies?: string[];
}

const delimiter = Buffer.alloc(8);

/** Returns undefined until the delimiter has arrived. Throws SyntaxError when the prelude is not JSON. */
export function splitPrelude(bytes: Buffer): { head: ResponseHead; rest: Buffer } | undefined {
  const end = bytes.indexOf(delimiter);
  if (end < 0) return undefined;
  const head = JSON.parse(bytes.subarray(0, end).toString()) as ResponseHead;
  return { head, rest: bytes.subarray(end + delimiter.length) };
}
