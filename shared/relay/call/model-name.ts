/** Splits the requested model name once, so that whitelist, price and channels use the same base name. */
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { modelNamePattern } from '../../wire/name-patterns.ts';

export interface ModelName {
  /** The name that whitelist, price and channels use and that every answer contains. */
  base: string;
  /** Prefix `web-`: search before answering. */
  web: boolean;
  /** Suffix `-official` or `official: true`: official billing. */
  official: boolean;
}

/** Splits a requested model into base name and modifiers. Removes at most one prefix and one suffix. */
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
