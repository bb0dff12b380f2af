/**
 * The language of the pages: the one that was chosen here before, else the first of the browser's that there is. The page of
 * models comes in it; the account's page has both.
 */
import { accountInChinese } from '../../../shared/relay/page/chinese.ts';
import { accountInEnglish, type AccountTexts } from '../../../shared/relay/page/english.ts';

const stored = 'relay-language';
export type Language = 'en' | 'zh';
const listed: Record<Language, AccountTexts> = { en: accountInEnglish, zh: accountInChinese };

/** Undefined: none was chosen, or storage is switched off. */
export function keptLanguage(): Language | undefined {
  try {
    const kept = localStorage.getItem(stored);
    return kept === 'en' || kept === 'zh' ? kept : undefined;
  } catch {
    return undefined;
  }
}

export function keepLanguage(language: Language): void {
  try {
    localStorage.setItem(stored, language);
  } catch {
    // It is asked for again on the next page.
  }
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
