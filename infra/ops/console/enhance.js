/** Adds to pages that work without it: sorting and filtering of tables, local times, keyboard shortcuts, drawers and copy buttons. */
'use strict';

const keyOf = (cell) =>
  cell?.dataset.sort ??
  cell?.querySelector('[data-sort]')?.dataset.sort ??
  cell?.querySelector('data')?.value ??
  cell?.textContent.trim() ??
  '';

function compare(a, b) {
  const [first, second] = [Number(a), Number(b)];
  if (a !== '' && b !== '' && !Number.isNaN(first) && !Number.isNaN(second)) return first - second;
  if (a === '' || b === '') return a === b ? 0 : a === '' ? -1 : 1;
  return a.localeCompare(b, 'en', { numeric: true });
}

/** Also sorts in rows that arrive while the page is live. Moves nothing if the order is already right. */
function sortRows(table) {
  const head = table.tHead.querySelector('[aria-sort]');
  if (!head) return;
  const sign = head.getAttribute('aria-sort') === 'ascending' ? 1 : -1;
  const keyIn = (row) => keyOf(row.cells[head.cellIndex]);
  const before = [...table.tBodies[0].rows];
  const rows = before.toSorted((a, b) => sign * compare(keyIn(a), keyIn(b)));
  if (rows.some((row, at) => row !== before[at])) table.tBodies[0].append(...rows);
}

/** The page's address holds the order of one table: its name, the title of a column and a direction. */
const readOrder = () => new URLSearchParams(location.search).getAll('sort');

function chooseOrder(table, head) {
  const isNumber = head.classList.contains('number');
  const before = head.getAttribute('aria-sort');
  const direction = (before === null ? !isNumber : before === 'descending') ? 'ascending' : 'descending';
  for (const each of head.parentElement.cells) each.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', direction);
  const address = new URL(location.href);
  address.searchParams.delete('sort');
  for (const part of [nameOf(table), titleOf(head), direction]) address.searchParams.append('sort', part);
  history.replaceState(null, '', address);
  sortRows(table);
}

const nameOf = (table) => table.caption.textContent.trim();
/** Leaves out the time zone, because people can switch it. */
const titleOf = (head) => head.textContent.trim().replace(/ \((UTC|local)\)$/, '');

function makeSortable(table) {
  const [name, title, direction] = readOrder();
  for (const head of table.tHead.rows[0].cells) {
    if (head.hasAttribute('data-actions')) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'sort';
    button.append(...head.childNodes);
    button.addEventListener('click', () => chooseOrder(table, head));
    head.append(button);
    if (name === nameOf(table) && title === titleOf(head)) head.setAttribute('aria-sort', direction);
  }
}

function makeFilterable(table, number) {
  const words = 'Filter rows';
  table
    .closest('.scroll')
    .insertAdjacentHTML(
      'beforebegin',
      `<label class="filter"><input type="text" id="filter-${number}" placeholder="${words}" aria-label="${words}" autocomplete="off"><span aria-live="polite"></span></label>`,
    );
  const [input, count] = table.closest('.scroll').previousElementSibling.children;
  input.addEventListener('input', () => {
    const wanted = input.value.trim().toLowerCase();
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const fits = row.textContent.toLowerCase().includes(wanted);
      row.hidden = !fits;
      if (fits) shown += 1;
    }
    count.textContent = wanted === '' ? '' : `${shown} of ${table.tBodies[0].rows.length}`;
  });
}

/** Adds a checkbox to the table's head that ticks all visible rows. */
function makeTickable(table) {
  const listTicks = () => [...table.querySelectorAll('tbody tr:not([hidden]) input[type=checkbox]')];
  if (listTicks().length === 0) return;
  const all = document.createElement('input');
  all.type = 'checkbox';
  all.setAttribute('aria-label', 'Select all rows shown');
  all.addEventListener('change', () => listTicks().forEach((each) => (each.checked = all.checked)));
  table.tHead.rows[0].cells[0].append(' ', all);
}

/** On a phone each row is a card, whose lines have the titles of their columns. */
function labelCells(table) {
  const titles = [...table.tHead.rows[0].cells].map((head) => head.textContent.trim());
  for (const row of table.tBodies[0].rows)
    if (row.cells[1] && !row.cells[1].dataset.label)
      [...row.cells].forEach((cell, position) => (cell.dataset.label = titles[position]));
  table.classList.add('cards');
}

const labelAll = () => document.querySelectorAll('table.data').forEach(labelCells);

/** As the command line reads files: spreadsheets write UTF-16 with its mark, or GB 18030. */
function decoded(bytes) {
  const text = new TextDecoder().decode(bytes);
  const marked = { 0xff: 'utf-16le', 0xfe: 'utf-16be' }[bytes[0]];
  const name = marked && (bytes[0] ^ bytes[1]) === 1 ? marked : 'gb18030';
  return text.includes('\ufffd') ? new TextDecoder(name).decode(bytes) : text;
}

/** A sheet in a form, which a file may fill. A form of 256 KB is refused without what was typed, so it is not sent. */
function takeSheet(area) {
  const bound = () => {
    const sent = new URLSearchParams({ csv: area.value.replaceAll('\n', '\r\n') }).toString().length;
    const words = 'Larger than 256 KB. Use the command line, which accepts more.';
    area.setCustomValidity(sent > 255 * 1024 ? words : '');
    area.reportValidity();
  };
  const chooser = '<input type="file" aria-label="Or choose a file" accept=".csv,.tsv,.txt,.json">';
  area.addEventListener('input', bound);
  area.insertAdjacentHTML('beforebegin', chooser);
  area.previousElementSibling.addEventListener('change', async ({ target }) => {
    // So much is too much in any of them.
    for (const file of target.files)
      area.value = decoded(new Uint8Array(await file.slice(0, 2 ** 19).arrayBuffer()));
    bound();
  });
}

document.querySelectorAll('textarea[name="csv"]').forEach(takeSheet);
document.querySelectorAll('table[data-filter]').forEach(makeFilterable);
document.querySelectorAll('table.data').forEach(makeTickable);

const isLocal = document.cookie.split('; ').includes('relay_zone=local');
/** How times stand on pages: the parts of `2026-11-22 09:41:07`, the longest first. */
const written = [
  [0, 19],
  [0, 16],
  [5, 19],
  [11, 19],
  [11, 16],
  [5, 10],
];

function showLocal(element) {
  const text = element.getAttribute('datetime') ?? element.dataset.utc;
  if (element.dataset.zoned || !/[T ]/.test(text)) return;
  element.dataset.zoned = 'local';
  const at = new Date(text.endsWith('Z') ? text : `${text.replace(' ', 'T')}Z`);
  const utc = at.toISOString().replace('T', ' ');
  // Sweden writes times as ISO 8601 does.
  const local = at.toLocaleString('sv-SE');
  if (element.title) element.title = `${local} local, ${element.title}`;
  for (const each of element.children.length > 0 ? element.children : [element]) {
    const found = written.find(([from, to]) => each.textContent.includes(utc.slice(from, to)));
    if (found)
      each.textContent = each.textContent
        .replace(utc.slice(...found), local.slice(...found))
        .replace(/ UTC$/, ' local');
  }
}

function showAllLocal() {
  document.querySelectorAll('time[datetime], [data-utc]').forEach(showLocal);
  for (const head of document.querySelectorAll('thead th'))
    if (head.textContent.includes('(UTC)'))
      (head.firstElementChild ?? head).textContent = head.textContent.trim().replace('(UTC)', '(local)');
}

function offerZones(button) {
  button.hidden = false;
  button.textContent = isLocal ? 'Local time' : 'UTC';
  button.title = isLocal ? 'Show times in UTC' : 'Show times in local time';
  button.addEventListener('click', () => {
    document.cookie = `relay_zone=${isLocal ? 'utc' : 'local'}; path=/; max-age=31536000; samesite=strict`;
    location.reload();
  });
}

/** Adds a button that copies a key, an id or a message. Hides commands, which can only be copied. In a table the button shows only a symbol. */
function offerCopy(element) {
  if (element.dataset.offered) return;
  element.dataset.offered = 'yes';
  const isCommand = element.hasAttribute('data-command');
  const isSymbol = element.closest('table') !== null;
  const text = element.dataset.copy || element.textContent.trim();
  const button = document.createElement('button');
  button.type = 'button';
  button.className = isSymbol ? 'copy sign' : 'copy';
  const label = (words) =>
    isSymbol ? button.setAttribute('aria-label', words) : (button.textContent = words);
  const show = (isCopied) => {
    element.hidden = isCommand;
    button.classList.toggle('copied', isCopied);
    label(isCopied ? 'Copied' : isSymbol ? `Copy ${text}` : isCommand ? 'Copy as command' : 'Copy');
  };
  button.title = isCommand ? text : '';
  button.addEventListener('click', () => {
    element.hidden = false;
    navigator.clipboard.writeText(text).then(
      () => {
        show(true);
        setTimeout(show, 2000, false);
      },
      () => getSelection().selectAllChildren(element),
    );
  });
  show(false);
  element.after(button);
}

/** Opens a form over the list that links to it. The list keeps its order and its scroll position. */
function openOverList(event) {
  const link = event.target.closest?.('a');
  if (!link?.closest('[data-drawer]') || event.button > 0 || event.ctrlKey || event.metaKey || event.shiftKey)
    return;
  event.preventDefault();
  const list = location.href.replace(location.hash, '').slice(document.baseURI.length);
  sessionStorage.setItem('place', JSON.stringify([list, scrollY, link.getAttribute('href')]));
  location.assign(`${link.href}?${new URLSearchParams({ list })}`);
}

function restorePlace(list) {
  const [address, y, path] = JSON.parse(sessionStorage.getItem('place') ?? '[]');
  if (address !== list) return;
  // The browser would scroll to the result, which stays in sight anyway.
  const opener = drawer
    ? null
    : document.querySelector(`:is([data-drawer] a, a[data-drawer])[href="${path}"]`);
  (document.querySelector('.notice[autofocus]') ?? opener)?.focus({ preventScroll: true });
  scrollTo(0, y);
}

function showDrawer() {
  drawer.open = false;
  drawer.showModal();
  const isTyped = () =>
    [...drawer.querySelectorAll('input, textarea')].some(
      (field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked,
    );
  const leave = (event) => {
    event.preventDefault();
    if (!isTyped() || confirm('Discard your changes?')) location.assign(drawer.dataset.list);
  };
  drawer.addEventListener('cancel', leave);
  drawer.querySelector('.close').addEventListener('click', leave);
}

/** `/` focuses the search field of the page, else the global one; `g` and a letter open a section. */
function goByKey() {
  let isGoing = false;
  document.addEventListener('keydown', (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, textarea, select')) return;
    const ways = [...document.querySelectorAll('[data-go]')];
    const way = isGoing && ways.find(({ dataset }) => dataset.go === key);
    isGoing = key === 'g' && !way;
    if (way) way.click();
    if (key !== '/') return;
    event.preventDefault();
    const field = document.querySelector('main [role=search] input, main .filter input');
    (field ?? document.querySelector('.find input')).focus();
  });
}

/** Also of what comes while a page is watched. */
function complete() {
  document.querySelectorAll('table[data-sortable]:not(:has(.sort))').forEach(makeSortable);
  document.querySelectorAll('table[data-sortable]').forEach(sortRows);
  labelAll();
  document.querySelectorAll('table [data-copy], :not(a)[data-copy], [data-command]').forEach(offerCopy);
  if (isLocal) showAllLocal();
}

// Show a result only once: remove it from the address, so that a reload does not show it again.
const address = new URL(location.href);
if (address.searchParams.has('done')) {
  address.searchParams.delete('done');
  history.replaceState(null, '', address);
}

/** Searches for a key's hint instead of the key, because histories and logs keep addresses. */
document.addEventListener('submit', ({ target }) => {
  if (target.method === 'get')
    for (const field of target.querySelectorAll('input'))
      field.value = field.value.replace(/\b(sk-[\w-]{4})[\w-]{12,}([\w-]{4})/, '$1...$2');
});

// On a phone the sections scroll sideways.
const current = document.querySelector('.sections [aria-current]');
if (current) current.closest('.sections').scrollLeft = current.offsetLeft - 60;
document.querySelectorAll('[data-zone]').forEach(offerZones);
document.addEventListener('click', openOverList);
goByKey();
complete();
const drawer = document.querySelector('dialog.drawer');
if (drawer) showDrawer();
restorePlace(drawer?.dataset.list ?? location.href.slice(document.baseURI.length));
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
