/** What of a request changes its price. Every dialect sends these only where the channel allows them by name. */

/** Limits by other names, which an upstream may follow instead of the limit that the balance covers. */
const otherLimits = ['max_new_tokens', 'max_tokens_to_sample', 'n_predict', 'num_predict', 'best_of'];

/**
 * Fields that could move a call to another model or price tier than the billed one, or have the upstream do what is
 * charged beside tokens: searches, tools, containers, audio. Rejected tokens of a `prediction` are charged as output.
 */
export const priceFields: readonly string[] = [
  'service_tier',
  'speed',
  'performance_config',
  'inference_geo',
  'background',
  'prediction',
  'models',
  'fallbacks',
  'preset',
  'route',
  'provider',
  'plugins',
  'web_search_options',
  'search_parameters',
  'search_options',
  'search_settings',
  'enable_search',
  'compound_custom',
  'data_sources',
  'mcp_servers',
  'container',
  'modalities',
  'audio',
  'image_config',
  'extra_body',
  ...otherLimits,
];

/** Types of tools that the caller runs. All others run at the upstream, which charges for them. */
export const callersTools: ReadonlySet<string> = new Set(['function', 'custom']);

/** The service tier that an upstream says it used, which clients are shown: one short word, or none. */
export const serviceTierOf = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[\w-]{1,32}$/.test(value) ? value : undefined;
