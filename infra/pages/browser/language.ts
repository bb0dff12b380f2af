/**
 * The language of the pages: the one that was chosen here before, else the first of the browser's that there is. The page of
 * models comes in it; the account's page has both.
 */
import { accountInChinese } from '../../../shared/relay/page/chinese.ts';
import { accountInEnglish, type AccountTexts } from '../../../shared/relay/page/english.ts';

export type Language = 'en' | 'zh';
const listed: Record<Language, AccountTexts> = { en: accountInEnglish, zh: accountInChinese };

/** A text that the browser keeps. Where storage is switched off it keeps none. */
export const keptText = (storage: () => Storage, name: string) => ({
  get(): string | undefined {
    try {
      return storage().getItem(name) ?? undefined;
    } catch {
      return undefined;
    }
  },
  set(text: string | undefined): void {
    try {
      if (text === undefined) storage().removeItem(name);
      else storage().setItem(name, text);
    } catch {
      // As if it were not asked for.
    }
  },
});

const chosen = keptText(() => localStorage, 'relay-language');

export const keepLanguage = (language: Language): void => chosen.set(language);

/** Undefined: none was chosen. */
export function keptLanguage(): Language | undefined {
  const kept = chosen.get();
  return kept === 'en' || kept === 'zh' ? kept : undefined;
}

export const languageOf = (tag: string): Language => (tag.startsWith('zh') ? 'zh' : 'en');

/** Of the language that is shown. */
export const t = (): AccountTexts => listed[languageOf(document.documentElement.lang)];

export const wantedLanguage = (): Language =>
  keptLanguage() ?? languageOf(navigator.languages.find((tag) => /^(?:zh|en)\b/i.test(tag)) ?? '');

/** Shows what the page says by itself in a language; what was written by a script is written anew by it. */
export function showIn(language: Language): void {
  const words = listed[language];
  const textOf = (key: string | undefined): string => String(words[key as keyof AccountTexts]);
  document.documentElement.lang = words.lang;
  document.title = words.account;
  for (const each of document.querySelectorAll<HTMLElement>('[data-t], [data-label], [data-hint]')) {
    const { t: text, label, hint } = each.dataset;
    if (text !== undefined) each.textContent = textOf(text);
    if (label !== undefined) each.ariaLabel = textOf(label);
    if (hint !== undefined) each.setAttribute('placeholder', textOf(hint));
  }
}
