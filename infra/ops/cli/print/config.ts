/** What changes of a configuration look like to a reader. */
import { keyAttributes } from '../../../../shared/config/config-rows.ts';
import {
  attributeChanges,
  type AttributeChange,
  type RowChange,
} from '../../../../shared/operate/config/row-changes.ts';
import { nameOf } from '../../../../shared/operate/config/findings.ts';
import { say, sayJson } from '../terminal/terminal.ts';

const shownCharactersMax = 160;

/** @param bad rows with a problem, by name: only the names of their attributes are shown */
export function sayChanges(changes: RowChange[], bad: ReadonlySet<string>): void {
  for (const change of changes) {
    const sign = change.before === undefined ? '+' : change.after === undefined ? '-' : '~';
    say(`${sign} ${nameOf(change)}`);
    if (change.after === undefined) continue;
    const isBad = bad.has(nameOf(change));
    for (const attribute of attributeChanges(change)) {
      if (attribute.name === keyAttributes[change.table]) continue;
      say(`    ${attribute.name}: ${isBad ? 'not shown, as the row has a problem' : changeWords(attribute)}`);
    }
  }
}

export function sayChangesJson(changes: RowChange[], bad: ReadonlySet<string>): void {
  sayJson(
    changes.map((change) => {
      const { table, key, before, after } = change;
      const kind = before === undefined ? 'added' : after === undefined ? 'removed' : 'changed';
      const attributes = attributeChanges(change);
      const shown = bad.has(nameOf(change)) ? attributes.map(({ name }) => ({ name })) : attributes;
      return { table, key, change: kind, attributes: shown };
    }),
  );
}

export function countWords(changes: RowChange[]): string {
  const removed = changes.filter(({ after }) => after === undefined).length;
  const written = changes.length - removed;
  if (removed === 0) return `${written} rows to write`;
  return `${written} rows to write, ${removed} to delete`;
}

function changeWords({ before, after }: AttributeChange): string {
  if (before === undefined) return shorten(JSON.stringify(after));
  if (after === undefined) return `${shorten(JSON.stringify(before))} -> (gone)`;
  return (
    listWords(before, after) ?? `${shorten(JSON.stringify(before))} -> ${shorten(JSON.stringify(after))}`
  );
}

/** Long lists of models differ by a few: those are said. undefined: no lists of texts, or another order. */
function listWords(before: unknown, after: unknown): string | undefined {
  if (!isTexts(before) || !isTexts(after)) return undefined;
  const words = [
    ...after.filter((text) => !before.includes(text)).map((text) => `+ ${text}`),
    ...before.filter((text) => !after.includes(text)).map((text) => `- ${text}`),
  ];
  return words.length > 0 ? words.join('  ') : undefined;
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

const shorten = (text: string): string =>
  text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}…` : text;
