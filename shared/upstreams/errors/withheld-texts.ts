/** What the relay knows of a channel that its clients must not learn from the upstream's errors. */
import type { Withheld } from './error-text.ts';

export interface KnownTexts {
  secret: string | undefined;
  host: string;
  region: string | undefined;
  /** The upstream's name of the model, or of the deployment. */
  model: string;
  /** The name that the client used. It may be shown. */
  publicModel: string;
}

export function withheldTexts({
  secret = '',
  host,
  region = '',
  model,
  publicModel,
}: KnownTexts): Withheld[] {
  const names = model === publicModel ? [] : namesOf(model).filter((name) => name !== publicModel);
  // Of an address such as `my-resource.openai.azure.com`, the name of the resource alone is telling.
  const labels = host.split('.').filter((label) => label.length > 4 && /[-0-9]/.test(label));
  return [secret, host, region, ...labels, ...names.map(patternOf)].filter((word) => word !== '');
}

/** The name, longest first, and what is left of it without vendor, region and version, as vendors quote it. */
function namesOf(model: string): string[] {
  const names = new Set([model, encodeURIComponent(model), model.slice(model.lastIndexOf('/') + 1)]);
  for (const name of names) {
    const bare = [/^[a-z-]+\./i, /:\d+$/, /-v\d+$/, /[-@]\d{8}$/, /-\d{4}-\d{2}-\d{2}$/, /-latest$/];
    for (const part of bare) names.add(name.replace(part, ''));
  }
  return [...names].filter((name) => name.length > 2).toSorted((a, b) => b.length - a.length);
}

/**
 * A name that could be any word (`large`) counts only in quotes, or after `model` and the like. Others count as a
 * whole word in any case of letters, with a version behind them.
 */
function patternOf(name: string): RegExp {
  const literal = name.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);
  return /^[a-z]+$/i.test(name)
    ? new RegExp(String.raw`(?<=["'\`]|\b(?:model|deployment|engine)s?[:=]?\s+)${literal}(?![a-z0-9-])`, 'gi')
    : new RegExp(String.raw`(?<![a-z0-9])${literal}(?:[-:@.]v?\d[\w]*)*(?![a-z0-9])`, 'gi');
}
