/** A name of a row as one word of a command to copy: names may have blanks, and what a shell would run. */
export const shellWord = (text: string): string =>
  /^[\w.@%+=:,/-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
