/**
 * The language of the pages: the one chosen before, else the first supported one of the browser. The models page arrives in it;
 * the account page holds both.
 */
import { accountInChinese } from '../../../shared/relay/page/chinese.ts';
import { accountInEnglish, type AccountTexts } from '../../../shared/relay/page/english.ts';

export type Language = 'en' | 'zh';
const listed: Record<Language, AccountTexts> = { en: accountInEnglish, zh: accountInChinese };

/** Stores a text in the browser, or nothing if storage is disabled. */
export const createStoredText = (storage: () => Storage, name: string) => ({
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
      // Without storage the text is simply not kept.
    }
  },
});

const chosen = createStoredText(() => localStorage, 'relay-language');

export const saveLanguage = (language: Language): void => chosen.set(language);

export function loadLanguage(): Language | undefined {
  const kept = chosen.get();
  return kept === 'en' || kept === 'zh' ? kept : undefined;
}

export const languageOf = (tag: string): Language => (tag.startsWith('zh') ? 'zh' : 'en');

/** Texts of the language that is shown. */
export const t = (): AccountTexts => listed[languageOf(document.documentElement.lang)];

export const chooseLanguage = (): Language =>
  loadLanguage() ?? languageOf(navigator.languages.find((tag) => /^(?:zh|en)\b/i.test(tag)) ?? '');

/** Translates the page's fixed texts; scripts write theirs again. */
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
