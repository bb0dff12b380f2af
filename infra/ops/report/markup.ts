/** Markup in which every stored text is escaped: only what `html` itself wrote is markup. */
import { escaped } from '../../../shared/relay/page/page-kit.ts';

export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** What may stand in markup. */
export type Content = Markup | string | number | undefined | readonly Content[];

export const html = (parts: TemplateStringsArray, ...values: Content[]): Markup =>
  new Markup(parts.map((part, index) => (index === 0 ? '' : textOf(values[index - 1])) + part).join(''));

function textOf(value: Content): string {
  if (value === undefined) return '';
  if (value instanceof Markup) return value.text;
  if (typeof value === 'object') return value.map(textOf).join('');
  return escaped(String(value));
}
