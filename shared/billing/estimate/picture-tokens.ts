import type { PictureSize } from './picture-size.ts';

export interface MediaTokens {
  above: number;
  unbiased: number;
}

/** Undefined where the size cannot be read: the picture of another server, or an unknown format. */
type KnownSize = PictureSize | undefined;

/** A picture at low detail, as OpenAI counts it. Others know no detail, so it lowers the unbiased estimate alone. */
const lowDetail = 85;
const tile = 512;
const patch = 32;
const patchesMax = 1_536;
/** OpenAI's factor for the smaller models that count patches. Its smallest ones have more: `image_tokens` says it. */
const patchFactor = 1.62;
/** Anthropic's most for a picture, before and since the models that take 2,576 pixels. */
const areaTokensMax = 4_784;
const usual: PictureSize = { width: 1_024, height: 1_024 };

/**
 * From above: the largest of the vendors' formulas, because a model's name does not say whose formula holds. Unbiased:
 * OpenAI's tiles. Sources: OpenAI's and Anthropic's pages on vision, November 2026.
 */
export function pictureTokens(size: KnownSize, detail: string | undefined): MediaTokens {
  const unbiased = detail === 'low' ? lowDetail : tileTokens(size ?? usual);
  if (!size) return { above: areaTokensMax, unbiased };
  return { above: Math.max(tileTokens(size), patchTokens(size), areaTokens(size)), unbiased };
}

/** 170 for each tile of 512 pixels, after the picture was made to fit 2,048 by 2,048 and its short side 768. */
function tileTokens({ width, height }: PictureSize): number {
  const fit = Math.min(1, 2_048 / Math.max(width, height));
  const scale = fit * Math.min(1, 768 / (Math.min(width, height) * fit));
  return lowDetail + 170 * Math.ceil((width * scale) / tile) * Math.ceil((height * scale) / tile);
}

const patchTokens = ({ width, height }: PictureSize): number =>
  Math.ceil(Math.min(patchesMax, Math.ceil(width / patch) * Math.ceil(height / patch)) * patchFactor);

const areaTokens = ({ width, height }: PictureSize): number =>
  Math.min(areaTokensMax, Math.ceil((width * height) / 750));
