/**
 * Text as it may reach a terminal or a spreadsheet: rows, customers and upstreams write what they like, and must not move a
 * cursor, name a window, turn a line around or run as a formula.
 */

/** Control characters but tab and line feed, and the marks that turn the order of what follows. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const unprintable = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** As JSON writes them, so that JSON stays the same value. */
export const shownText = (text: string): string =>
  text.replaceAll(unprintable, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Some take a line feed off first, and full-width signs for the usual ones. */
const formulaStart = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;

/** A text that a spreadsheet would run begins with a quote. Numbers and names such as `@cf/model` run nothing, and stay. */
export const shownCell = (text: string): string =>
  formulaStart.test(text) && !/^(?:[-@][\w.:/@-]*|[+-]?[\d.]+)$/.test(text) ? `'${text}` : text;
