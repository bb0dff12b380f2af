/** Banned words in names of files, in names in code, in comments, in texts of tests, and in pages. */
import type { Source } from '../sources.ts';
import type { BannedWord } from '../words.ts';

/** Small letters, the parts of a name apart, a comment as one line. */
export const plainWords = (text: string): string =>
  text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[_-]/g, ' ')
    .replaceAll(/\s*\n\s*(\*|\/\/)?\s*/g, ' ')
    .toLowerCase();

const isProse = (text: string): boolean => text.split(' ').length > 2;

function wordsOf({ file, tokens }: Source): string {
  const inTest = file.startsWith('test/');
  const kept = tokens.filter(
    ({ kind, text }) =>
      kind === 'code' || kind === 'comment' || (inTest && kind === 'string' && isProse(text)),
  );
  return plainWords([file, ...kept.map(({ text }) => text)].join(' ; '));
}

const found = (file: string, text: string, banned: BannedWord[]): string[] =>
  banned
    .filter(({ except = {} }) => !Object.keys(except).some((each) => file.startsWith(each)))
    .flatMap(({ word, instead }) => {
      const match = word.exec(text)?.[0];
      return match ? [`${file}: "${match}", say: ${instead}`] : [];
    });

export const bannedInSources = (sources: Source[], banned: BannedWord[]): string[] =>
  sources
    .filter(({ file }) => !file.startsWith('test/tidy/'))
    .flatMap((source) => found(source.file, wordsOf(source), banned));

/** Exceptions that no source makes use of. */
export const needlessExceptions = (sources: Source[], banned: BannedWord[]): string[] =>
  banned.flatMap(({ word, except = {} }) =>
    Object.keys(except)
      .filter((each) => !sources.some((source) => source.file.startsWith(each) && word.test(wordsOf(source))))
      .map((each) => `${each} needs no leave for ${word}`),
  );

/** A page without code, targets of links, and names of tests: these are checked where they are defined. */
const proseOf = (text: string): string =>
  text
    .replaceAll(/\[[a-z-]+\] "[^"]+"(, "[^"]+")*/g, '')
    .replaceAll(/^```.*?^```$/gms, '')
    .replaceAll(/`[^`\n]*`/g, '')
    .replaceAll(/\]\([^)]*\)/g, ']');

export const bannedInPages = (pages: { file: string; text: string }[], banned: BannedWord[]): string[] =>
  pages.flatMap(({ file, text }) => found(file, plainWords(proseOf(text)), banned));
