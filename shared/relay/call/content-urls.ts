/**
 * Checks the URLs of images, files and the like, which upstreams fetch: a self-hosted upstream must not be led into its
 * own network by a caller. The relay itself never fetches them. Loaded by the first request with more than text.
 */
import type { Settings } from '../../config/settings.ts';
import type { ContentAt } from '../../endpoints/endpoint.ts';
import { hostProblem } from '../../upstreams/endpoint-rules.ts';
import type { ChatRequest } from '../../wire/canonical-call.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { isRecord } from '../../wire/json.ts';

/** Signed URLs have some 2,000 characters. */
const urlLengthMax = 8_192;

/** Fields that hold words, and what an earlier answer quoted: no upstream fetches these. */
const words = new Set([
  'type',
  'text',
  'refusal',
  'thinking',
  'reasoning',
  'title',
  'context',
  'filename',
  'annotations',
  'citations',
]);
/** A text that a lenient client of URLs would take for one, in a field of any name. */
const urlLike = /^[\0-\x20]*(?:[a-z][a-z0-9+.-]{0,40}:\/\/|(?:https?|ftp|file|data):)/i;
/** Longer than the scheme of any URL. Parsers of URLs leave out tabs and line ends, wherever they stand. */
const looksLikeUrl = (text: string): boolean => urlLike.test(text.slice(0, 128).replaceAll(/[\t\n\r]/g, ''));
/** No blanks, control characters and backslashes, which parsers of URLs treat in different ways, and a host. */
const plainHttpUrl = /^https?:\/\/[^\s\\/?#\0-\x20\x7f][^\s\\\0-\x20\x7f]*$/i;

/** The contents of a request in chat form, at the paths of a chat request. */
export const contentsOfChat = ({ messages }: ChatRequest): ContentAt[] =>
  messages.flatMap((message, i) => [
    { param: `messages[${i}].content`, content: message.content },
    // Of an earlier answer, as some vendors write it.
    { param: `messages[${i}].images`, content: message['images'] },
  ]);

/**
 * Throws an InvalidRequest that names the part. Data URLs are fetched from nowhere, so those that are no images need no
 * leave of the setting.
 */
export function checkContentUrls(
  contents: readonly ContentAt[],
  { contentUrls: beginnings }: Pick<Settings, 'contentUrls'>,
): void {
  for (const { param, content } of contents)
    if (typeof content === 'object') check(content, { param, field: '', isImage: false }, beginnings);
}

interface Place {
  param: string;
  /** The name of the field. */
  field: string;
  isImage: boolean;
}

/** The depth of a body is bounded, so that of this recursion is. */
function check(value: unknown, place: Place, beginnings: readonly string[]): void {
  const { param, field } = place;
  if (typeof value === 'string') {
    const isUrl = field === 'url' || field.endsWith('_url') || looksLikeUrl(value);
    const problem = isUrl ? urlProblem(value, place, beginnings) : undefined;
    if (problem !== undefined) throw refused(place, `'${param}' ${problem}`);
  } else if (Array.isArray(value)) {
    for (const [i, one] of value.entries()) check(one, { ...place, param: `${param}[${i}]` }, beginnings);
  } else if (isRecord(value)) {
    const isImage = place.isImage || String(value['type']).includes('image');
    for (const [name, one] of Object.entries(value))
      if (!words.has(name) && one !== null)
        check(
          one,
          { param: `${param}.${name}`, field: name, isImage: isImage || name.includes('image') },
          beginnings,
        );
  }
}

/** The rest of a sentence that begins with the path. Never quotes the URL, which may hold a secret. */
function urlProblem(url: string, { isImage }: Place, beginnings: readonly string[]): string | undefined {
  const isData = /^data:/i.test(url);
  if (isData && !isImage) return undefined;
  if (!isData && url.length > urlLengthMax)
    return `has ${url.length} characters; a URL may have ${urlLengthMax} at most.`;
  const begun = beginnings.filter((each) => url.slice(0, each.length).toLowerCase() === each);
  if (begun.length === 0) return `must begin with one of: ${beginnings.join(' ')}`;
  // An image of this type can hold links of its own. No vendor names it as one that it reads.
  if (isData && /^data:image\/svg/i.test(url) && !begun.some((each) => each.includes('svg')))
    return 'must not be an SVG image.';
  if (isData || !/^https?:/i.test(url)) return undefined;
  const parsed = plainHttpUrl.test(url) ? URL.parse(url) : null;
  if (parsed === null) return 'must be a valid URL, without blanks.';
  if (parsed.username !== '' || parsed.password !== '')
    return 'must not have a user name or password before the host.';
  const isNamed = begun.some((each) => each.includes('//'));
  if (!isNamed && hostProblem(new URL(`https://${parsed.host}`), { local: false }) !== undefined)
    return 'must have a public host.';
  return undefined;
}

const refused = ({ isImage, param }: Place, message: string): InvalidRequest =>
  new InvalidRequest(isImage ? 'invalid_image_url' : 'invalid_url', param, message);
