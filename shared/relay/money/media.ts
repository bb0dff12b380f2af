/** Loads what estimates pictures, files and sound, at the first request that has any. */
import type { MediaEstimator } from '../../billing/estimate/media-tokens.ts';
import { hasMedia } from '../../billing/estimate/input-tokens.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';

export async function mediaFor(
  request: ChatRequest,
  imageTokens: number | undefined,
): Promise<MediaEstimator | undefined> {
  if (!hasMedia(request)) return undefined;
  const { mediaEstimator } = await import('../../billing/estimate/media-tokens.ts');
  return mediaEstimator(imageTokens);
}
