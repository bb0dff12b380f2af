/** What of a request changes its price. Every dialect sends these only where the channel allows them by name. */

/** Fields that could move a call to another model or price tier than the billed one. */
export const priceFields: readonly string[] = [
  'service_tier',
  'speed',
  'models',
  'fallbacks',
  'preset',
  'route',
  'provider',
  'plugins',
  'web_search_options',
  'search_parameters',
  'enable_search',
  'modalities',
  'audio',
  'extra_body',
];

/** Types of tools that the caller runs. All others run at the upstream, which charges for them. */
export const callersTools: ReadonlySet<string> = new Set(['function', 'custom']);

/** The service tier that an upstream says it used, which clients are shown: one short word, or none. */
export const serviceTierOf = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[\w-]{1,32}$/.test(value) ? value : undefined;
