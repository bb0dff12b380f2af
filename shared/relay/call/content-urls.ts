/**
 * Checks the URLs of images, files and the like, which upstreams fetch: a self-hosted upstream must not be led into its
 * own network by a caller. The relay itself never fetches them.
 */
import type { Settings } from '../../config/settings.ts';
import { findHostProblem } from '../../upstreams/endpoint-rules.ts';
import { looksLikeUrl, pathOf, type FoundMedium } from '../../wire/media-walk.ts';

/** Signed URLs have some 2,000 characters. */
const urlLengthMax = 8_192;

/** No blanks, control characters and backslashes, which parsers of URLs treat in different ways, and a host. */
const plainHttpUrl = /^https?:\/\/[^\s\\/?#\0-\x20\x7f][^\s\\\0-\x20\x7f]*$/i;

/** `problem` completes a sentence that begins with the path. */
export interface UrlRefusal {
  reason: 'url';
  param: string;
  isImage: boolean;
  problem: string;
}

/** The setting does not restrict data URLs of other kinds than images, because nobody fetches them. */
export function findRefusedUrl(
  places: Iterable<FoundMedium>,
  { contentUrls: beginnings }: Pick<Settings, 'contentUrls'>,
): UrlRefusal | undefined {
  for (const { kind, value = '', field, block = '', link } of places) {
    const isUrl = value !== '' || field === 'url';
    if (!(isUrl && (/(?:^|_)url$|Url$/.test(field) || looksLikeUrl(value)))) continue;
    const isImage = kind === 'picture' || block.includes('image');
    const problem = findUrlProblem(value, isImage, beginnings);
    if (problem !== undefined) return { reason: 'url', param: pathOf({ link }), isImage, problem };
  }
  return undefined;
}

/** The rest of a sentence that begins with the path. Never quotes the URL, which may hold a secret. */
function findUrlProblem(url: string, isImage: boolean, beginnings: readonly string[]): string | undefined {
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
  if (parsed === null) return 'must be a valid URL, without spaces.';
  if (parsed.username !== '' || parsed.password !== '')
    return 'must not have a user name or password before the host.';
  const isNamed = begun.some((each) => each.includes('//'));
  if (!isNamed && findHostProblem(new URL(`https://${parsed.host}`), { local: false }) !== undefined)
    return 'must have a public host.';
  return undefined;
}
