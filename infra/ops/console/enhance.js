/** What script adds to pages that work without it: sorting and filtering of tables. */
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

function sortBy(table, heads, position) {
  const head = heads[position];
  const isNumber = head.classList.contains('number');
  const before = head.getAttribute('aria-sort');
  const isUp = before === null ? !isNumber : before === 'descending';
  for (const each of heads) each.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', isUp ? 'ascending' : 'descending');
  const sign = isUp ? 1 : -1;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => sign * compare(keyOf(a.cells[position]), keyOf(b.cells[position])));
  table.tBodies[0].append(...rows);
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, position) => {
    if (head.hasAttribute('data-actions')) return;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'sort';
    button.append(...head.childNodes);
    button.addEventListener('click', () => sortBy(table, heads, position));
    head.append(button);
  });
}

function makeFilterable(table, number) {
  const words = 'Filter these rows';
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

document.querySelectorAll('table[data-sortable]').forEach(makeSortable);
document.querySelectorAll('table[data-filter]').forEach(makeFilterable);
