/**
 * Puts into a page what the server sends while it is watched. Keeps so many rows and no more, asks nothing while the page is
 * hidden or paused, and moves no row under a pointer or the keyboard's focus.
 */
'use strict';

/** After such a gap the page is read anew: nobody reads what came meanwhile one by one. */
const gapMsMax = 10 * 60_000;

const [retryMs, retryMsMax] = [500, 60_000];
const failuresMax = 5;

const timeIn = (row) => Number(row.querySelector('time')?.dataset.sort ?? 0);

/** Adds each row once, newest first, and removes the oldest if there are too many. After a broken connection the server repeats rows. */
function addRows(body, rows, rowsMax) {
  const present = new Set([...body.rows].map(({ dataset }) => dataset.key));
  for (const row of rows.toReversed()) {
    if (present.has(row.dataset.key)) continue;
    const next = [...body.rows].find((each) => timeIn(each) <= timeIn(row));
    body.insertBefore(row, next ?? null);
  }
  if (body.rows.length <= rowsMax) return;
  // The page may show them in another order.
  const newestFirst = [...body.rows].toSorted((a, b) => timeIn(b) - timeIn(a));
  for (const row of newestFirst.slice(rowsMax)) row.remove();
}

function replaceContent(element, content) {
  const isOpen = [...element.querySelectorAll('details')].map(({ open }) => open);
  const places = [...element.querySelectorAll('.scroll')].map(({ scrollTop, scrollLeft }) => [
    scrollLeft,
    scrollTop,
  ]);
  element.replaceChildren(content);
  element.querySelectorAll('details').forEach((each, index) => (each.open = isOpen[index] ?? false));
  element.querySelectorAll('.scroll').forEach((each, index) => each.scrollTo(...(places[index] ?? [0, 0])));
}

/** A pointer that was left there holds nothing back. */
const idleMs = 60_000;
let movedMs = Date.now();
for (const event of ['pointermove', 'keydown', 'wheel'])
  document.addEventListener(event, () => (movedMs = Date.now()), { passive: true });

const isBusy = (element) => Date.now() - movedMs < idleMs && element.querySelector(':hover, :focus') !== null;

/** A part that waits until nobody is busy with its place: the last content, and as many rows as may be. */
class Part {
  #rows = document.createElement('tbody');
  #content;

  constructor(element, rowsMax) {
    [this.element, this.rowsMax] = [element, rowsMax];
    for (const event of ['pointerleave', 'focusout'])
      element.addEventListener(event, () => setTimeout(() => this.show()));
  }

  take({ rows, html }) {
    const template = document.createElement('template');
    template.innerHTML = html;
    if (rows) addRows(this.#rows, [...template.content.querySelectorAll('tr')], this.rowsMax);
    else this.#content = template.content;
    this.show();
  }

  show() {
    if (isBusy(this.element)) return;
    if (this.#content) replaceContent(this.element, this.#content);
    this.#content = undefined;
    if (this.#rows.rows.length > 0) addRows(this.element, [...this.#rows.rows], this.rowsMax);
    // Those that were there already.
    this.#rows.replaceChildren();
  }
}

function watch(bar) {
  const { live, after, rows, hours = Infinity } = bar.dataset;
  const [button, state, words] = bar.querySelectorAll('button, [role=status], [data-words]');
  const parts = new Map();
  let isOn = bar.hasAttribute('data-on');
  let cursor = after;
  let heardMs = Date.now();
  let begunMs = heardMs;
  let failures = 0;
  let source;

  const say = (text) => {
    if (state.textContent !== text) state.textContent = text;
  };
  const hear = ({ data, lastEventId }) => {
    const { words: said, trouble, parts: sent = [] } = JSON.parse(data);
    if (lastEventId) [cursor, heardMs] = [lastEventId, Date.now()];
    failures = 0;
    for (const each of sent) {
      const element = document.getElementById(each.id);
      if (!parts.has(each.id)) parts.set(each.id, new Part(element, Number(rows)));
      parts.get(each.id).take(each);
    }
    if (said) words.textContent = said;
    say(trouble ?? 'Live');
    if (Date.now() - begunMs > hours * 3_600_000) turn(false, `Paused after ${hours} hours`);
  };
  const close = () => {
    source?.close();
    source = undefined;
  };
  const open = (mayReload = true) => {
    if (source || !isOn || document.hidden) return;
    if (mayReload && Date.now() - heardMs > gapMsMax) return location.reload();
    source = new EventSource(`${live}&after=${cursor}`);
    source.addEventListener('message', hear);
    source.addEventListener('error', () => {
      if (source?.readyState === EventSource.CLOSED)
        return turn(false, 'Disconnected: the console stopped, or too many pages are live');
      // The browser itself would retry at a constant rate forever.
      close();
      // A reload while the console is stopped would lose the page.
      setTimeout(() => open(false), Math.min(retryMs * 2 ** failures, retryMsMax));
      failures += 1;
      if (failures > failuresMax) {
        const link = Object.assign(document.createElement('a'), {
          href: location.href,
          textContent: 'Reload',
        });
        state.replaceChildren('The console has stopped. ', link);
      } else if (Date.now() - heardMs > 5_000) say('Reconnecting');
    });
  };
  const turn = (on, text) => {
    isOn = on;
    button.textContent = on ? 'Pause' : 'Watch live';
    bar.toggleAttribute('data-on', on);
    say(text);
    if (on) open();
    else close();
  };

  button.addEventListener('click', () => {
    begunMs = Date.now();
    turn(!isOn, isOn ? 'Paused' : 'Live');
    const address = new URL(location.href);
    address.searchParams.set('live', isOn ? 'on' : 'off');
    history.replaceState(null, '', address);
  });
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()));
  // A page that the browser keeps to go back to would hold its connection.
  addEventListener('pagehide', close);
  addEventListener('pageshow', open);
  button.hidden = false;
  turn(isOn, isOn ? 'Live' : '');
}

document.querySelectorAll('[data-live]').forEach(watch);
