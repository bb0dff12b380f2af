/** Adds search and copy buttons to the models page, which works without them. */
import { createButton, createNode } from './elements.ts';
import { saveLanguage, loadLanguage, languageOf } from './language.ts';

const rows = [...document.querySelectorAll<HTMLTableRowElement>('.models tbody tr')];
const families = document.querySelector<HTMLElement>('.families');
const nothing = document.querySelector<HTMLElement>('#nothing');
const count = document.querySelector('#count');
/** The page brings the texts, so the script is the same in every language. */
const words = document.querySelector('main')?.dataset ?? {};

const toOther = document.querySelector<HTMLAnchorElement>('.language');
toOther?.addEventListener('click', () => saveLanguage(languageOf(toOther.lang)));
/** Reloads the page in the chosen language. */
function takeChosen(): void {
  const [kept, address] = [loadLanguage(), new URL(location.href)];
  if (kept === undefined || languageOf(document.documentElement.lang) === kept) return;
  if (address.searchParams.has('lang')) return;
  address.searchParams.set('lang', kept);
  location.replace(address);
}

function search(place: HTMLElement): void {
  const label = words['search'] ?? '';
  const own = { placeholder: label, ariaLabel: label, autocomplete: 'off', spellcheck: false } as const;
  const input = createNode('input', { type: 'search', ...own });
  input.addEventListener('input', () => filter(input.value));
  place.append(input);
  place.hidden = false;
  document.addEventListener('keydown', (event) => {
    const { activeElement } = document;
    if (event.key !== '/' || activeElement?.matches('input, textarea, select')) return;
    event.preventDefault();
    input.focus();
  });
}

/** Every word must match the model's name or its family's. */
function filter(written: string): void {
  const words = written.toLowerCase().split(/\s+/).filter(Boolean);
  let [family, shown, found] = ['', false, 0];
  let head: HTMLElement | undefined;
  for (const row of rows) {
    if (row.className === 'f') {
      head = row;
      head.hidden = words.length > 0;
      family = row.textContent.toLowerCase();
    } else if (row.className === 't') row.hidden = !shown;
    else {
      const name = `${family} ${row.querySelector('code')?.textContent.toLowerCase() ?? ''}`;
      shown = words.every((word) => name.includes(word));
      row.hidden = !shown;
      if (shown) found += 1;
      if (shown && head) head.hidden = false;
    }
  }
  if (families) families.hidden = words.length > 0;
  if (nothing) nothing.hidden = found > 0;
  if (count) count.textContent = String(found);
}

function createCopyButton(text: string, named: string): HTMLButtonElement {
  const made = createButton(words['copy'] ?? '', () => {
    void navigator.clipboard.writeText(text).then(() => {
      made.textContent = words['copied'] ?? '';
      setTimeout(() => (made.textContent = words['copy'] ?? ''), 1500);
    });
  });
  made.className = 'copy';
  made.ariaLabel = named;
  return made;
}

takeChosen();
const place = document.querySelector<HTMLElement>('#search');
if (place && rows.length > 0) search(place);
const base = document.querySelector('#base');
base?.after(createCopyButton(base.textContent, words['base'] ?? ''));
for (const block of document.querySelectorAll('details')) {
  const text = block.querySelector('code')?.textContent ?? '';
  const named = block.querySelector('summary')?.textContent ?? '';
  const copy = createCopyButton(text, words['example']?.replace('{}', named) ?? '');
  // Beside the summary, not in it: one control must not hold another one.
  block.querySelector('pre')?.before(copy);
}
