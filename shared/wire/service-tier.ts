/**
 * Service tiers: vendors serve a call sooner or later than usual at a price that is a multiple of the usual one. What a
 * client asks for is its `service_tier`, or Anthropic's `speed: "fast"`, which is the tier `fast`. What an upstream served is what it reports.
 */

/** Factors of the standard price by the name of a tier, as rows write them. */
export type ServiceTiers = Readonly<Record<string, number>>;

/** Names of the standard tier, as vendors write it, and of leaving the choice to them. */
export const standardTiers: ReadonlySet<string> = new Set(['default', 'standard', 'standard_only', 'auto']);

/**
 * OpenAI renamed `priority` to `fast` on 2026-07-30: both are asked for, models up to GPT-5.6 report the one and later
 * ones the other, whichever was asked for [vercel/ai 18589; docs.litellm.ai, "Fast & Ultrafast mode", 2026-10-06].
 */
const otherName = (name: string): string =>
  name === 'fast' ? 'priority' : name === 'priority' ? 'fast' : name;

/** Undefined: the tier has no price, under neither of its names. */
export function tierFactor(tiers: ServiceTiers = {}, name = ''): number | undefined {
  const found = [name, otherName(name)].find((one) => Object.hasOwn(tiers, one));
  return found === undefined ? undefined : tiers[found];
}

/**
 * The tier by which a call is charged: the reported one, else the one that it was sent; but none that is dearer than both that
 * and the standard tier, since no more is held and nobody asked for it. `default`: the standard one; undefined: nobody named one.
 */
export function resolveTier(tiers: ServiceTiers, sent?: string, reported?: string): string | undefined {
  const named = reported ?? sent;
  if (named === undefined) return undefined;
  if (standardTiers.has(named)) return 'default';
  const most = Math.max(1, tierFactor(tiers, sent) ?? 1);
  if ((tierFactor(tiers, named) ?? 1) <= most) return named;
  return most > 1 ? sent : 'default';
}

/**
 * A completion window of a background response is a tier, too: `8h` is `background_8h`. OpenAI offers 2 hours at 30 % less and 8 hours at
 * 40 % less [developers.openai.com, "Background mode", November 2026].
 */
export const windowParam = 'background_options.completion_window';
export const nameWindowTier = (hours: string): string => `background_${hours}`;

/** The window that a tier names, such as `8h`. */
export const readWindow = (tier: string | null | undefined): string | undefined =>
  /^background_(\d{1,2}h)$/.exec(tier ?? '')?.[1];
