/** What a client wants to see beside what it always sees: the query field `include`, as client libraries write it. */

export const sealedReasoning = 'reasoning.encrypted_content';
export const inputImages = 'message.input_image.image_url';

/** `include=a,b`, `include[]=a` and `include[0]=a`. Values that nobody knows here include nothing. */
export const includedIn = (query: URLSearchParams): ReadonlySet<string> =>
  new Set([...query].flatMap(([name, value]) => (/^include(\[\d*\])?$/.test(name) ? value.split(',') : [])));
