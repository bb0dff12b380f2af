/** What script adds to pages that work without it: plots, sorting and filtering of tables, one press of a button. */
'use strict';

const tones = { first: '--first', second: '--second', third: '--third', bad: '--bad' };
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** 12345 -> 12.3K */
function short(value) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toPrecision(3)}G`;
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)}K`;
  return String(Number(value.toPrecision(6)));
}

const shownFigure = (_, value) => short(value);
const two = (number) => String(number).padStart(2, '0');
const clock = (seconds) => {
  const time = new Date(seconds * 1000);
  return `${time.getUTCFullYear()}-${two(time.getUTCMonth() + 1)}-${two(time.getUTCDate())} ${two(time.getUTCHours())}:${two(time.getUTCMinutes())}`;
};

/** On the axis: the time of day, and the date where a day begins or days are what is shown. */
function tick(seconds, increment) {
  const [day, time] = clock(seconds).split(' ');
  return increment >= 86400 || time === '00:00' ? day.slice(5) : time;
}

function draw(place) {
  const source = document.getElementById(place.dataset.plot);
  const { height, times, series } = JSON.parse(source.textContent);
  if (times.length === 0) return undefined;
  // Of one value alone, uPlot makes the axis years long.
  const step = times.length > 1 ? times[1] - times[0] : 86400;
  const last = (high) => (times.length > 1 ? high : times[0]);
  const axis = {
    stroke: colour('--soft'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  };
  const bars = uPlot.paths.bars({ size: [0.8, 24] });
  const chart = new uPlot(
    {
      width: Math.max(200, place.clientWidth || place.parentElement.clientWidth - 28),
      height,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'UTC'),
      padding: [8, 8, 0, 0],
      cursor: { y: false, points: { size: 6 } },
      legend: { live: true },
      axes: [
        {
          ...axis,
          space: 56,
          size: 24,
          values: (...given) => given[1].map((seconds) => tick(seconds, given[4])),
        },
        { ...axis, size: 52, values: (_, splits) => splits.map(short) },
      ],
      scales: {
        x: { range: (_, low, high) => [low - step / 2, last(high) + step / 2] },
        y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.08 : 1] },
      },
      series: [
        { label: 'UTC', value: (_, seconds) => (seconds === null ? '–' : clock(seconds)) },
        ...series.map(({ label, kind, tone = 'first' }) => {
          const stroke = colour(tones[tone]);
          if (kind === 'bars')
            return {
              label,
              stroke,
              fill: `${stroke}66`,
              width: 0,
              paths: bars,
              points: { show: false },
              value: shownFigure,
            };
          return { label, stroke, width: 1.5, spanGaps: true, points: { size: 3 }, value: shownFigure };
        }),
      ],
    },
    [times, ...series.map(({ values }) => values)],
    place,
  );
  return chart;
}

function drawAll() {
  for (const place of document.querySelectorAll('[data-plot]')) {
    place.replaceChildren();
    // One plot that cannot be drawn leaves the others, and its figures below.
    try {
      draw(place);
    } catch {
      place.replaceChildren();
    }
  }
}

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
  const order =
    before === null
      ? isNumber
        ? 'descending'
        : 'ascending'
      : before === 'ascending'
        ? 'descending'
        : 'ascending';
  for (const each of heads) each.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', order);
  const sign = order === 'ascending' ? 1 : -1;
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
  const label = document.createElement('label');
  label.className = 'filter';
  const input = document.createElement('input');
  input.type = 'text';
  input.id = `filter-${number}`;
  input.placeholder = 'Filter these rows';
  input.setAttribute('aria-label', 'Filter these rows');
  input.autocomplete = 'off';
  const count = document.createElement('span');
  count.setAttribute('aria-live', 'polite');
  label.append(input, count);
  table.closest('.scroll').before(label);
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

// A button that is pressed twice sends one form. The server would carry it out once as well.
for (const form of document.querySelectorAll('form[method=post]'))
  form.addEventListener('submit', (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = 'yes';
  });
// A page that the browser kept is shown again with its buttons.
addEventListener('pageshow', () => {
  for (const form of document.querySelectorAll('form[data-sent]')) delete form.dataset.sent;
});

if (globalThis.uPlot) {
  drawAll();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
  let waiting;
  addEventListener('resize', () => {
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 150);
  });
}
