/** The requested model name, split once: the base name feeds whitelist, price and route alike. */
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { modelNamePattern } from '../../wire/name-patterns.ts';

export interface ModelName {
  /** What whitelist, price and route go by, and what every answer names. */
  base: string;
  /** Prefix `web-`: search before answering. */
  web: boolean;
  /** Suffix `-official` or `official: true`: official billing. */
  official: boolean;
}

/** Splits a requested model into its base name and its modifiers: one prefix, one suffix, the rest literal. */
export function parseModelName(requested: string, officialFlag: boolean): ModelName {
  const web = requested.startsWith('web-');
  const suffixed = requested.endsWith('-official');
  const base = requested.slice(web ? 'web-'.length : 0, suffixed ? -'-official'.length : undefined);
  if (!modelNamePattern.test(requested) || base === '')
    throw new InvalidRequest(
      'invalid_value',
      'model',
      'model must be 1 to 128 of the characters A-Z a-z 0-9 . _ : / @ - and name a model between its modifiers.',
    );
  return { base, web, official: suffixed || officialFlag };
}
