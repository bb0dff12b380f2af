/** Commands in sentences that the command line prints, too, as links to the pages that do the same. */
import { html, type Content, type Markup } from '../../markup.ts';
import { renderTimes } from './figures.ts';

export const renderCopyableCommand = (words: string): Markup =>
  html`<code data-command>npx --no relay-ops ${words}</code>`;

type CommandLink = readonly [pattern: RegExp, path: (...parts: string[]) => string, words: string];

/** Maps each command to the console page that does the same. Captured parts are escaped for the address. */
const commandLinks: readonly CommandLink[] = [
  [/^customer (?:show|on|off|close|set) (\S+)/, (name) => `customers/${name}`, 'the customer'],
  [/^customer/, () => 'customers', 'Customers'],
  [/^grant new (\S+) -/, (name) => `customers/${name}/payback`, 'Pay back'],
  [
    /^grant new (\S+) ([\d.]+) --id (\S+) --reason "([^"]*)"/,
    (...[name, amount, id, reason]) => `customers/${name}/grant?amount=${amount}&id=${id}&reason=${reason}`,
    'Credit it',
  ],
  [/^grant new ([^\s-]\S*)$/, (name) => `customers/${name}/grant`, 'Top up'],
  [/^grant (?:new|list) (?:--account )?(\S+)/, (name) => `customers/${name}`, 'the customer'],
  [/^grant/, () => 'customers', 'Customers'],
  [/^key new (\S+)/, (name) => `customers/${name}/keys/new`, 'New key'],
  [/^key list --account (\S+)/, (name) => `customers/${name}`, 'the customer'],
  [/^key/, () => 'keys', 'Keys'],
  [/^channel new/, () => 'channels-new', 'New channel'],
  [/^channel (?:show|test|probe|set) (\S+)/, (id) => `channels/${id}`, 'the channel'],
  [/^channel/, () => 'channels', 'Channels'],
  [/^charge/, () => 'charges', 'Prices'],
  [/^(?:setting|plan)/, () => 'settings', 'Settings'],
  [/^version diff/, () => 'versions/diff', 'Unpublished changes'],
  [/^version/, () => 'versions', 'Versions'],
  [/^audit --account (\S+)/, (name) => `audit?account=${name}`, 'Audit'],
  [/^(?:audit|check)/, () => 'audit', 'Audit'],
  [
    /^request list --channel (\S+) --status (\w+)/,
    (id, status) => `requests?channel=${id}&status=${status}`,
    'Requests',
  ],
  [/^request/, () => 'requests', 'Requests'],
];

const commandWords =
  /(?:run |with )?(?:`([a-z]+ ?[^`]*)`|npx --no relay-ops ([^;,()]*[^;,().\s])|(grant new \S+ -[\d.]+ --id \S+ --reason "[^"]*"))/g;

/** Renders a sentence that the command line prints, too. Replaces each command by a link to the page that does the same. */
export function renderWithCommandLinks(text: string): Content {
  const shown: Content[] = [];
  let from = 0;
  for (const match of text.matchAll(commandWords)) {
    const found = match.slice(1).find((each) => each !== undefined) ?? '';
    const command = found.replace(/^npx --no relay-ops /, '');
    shown.push(
      renderTimes(text.slice(from, match.index)),
      linkCommand(command) ?? renderCommandWithoutPage(match[0], command),
    );
    from = match.index + match[0].length;
  }
  return [...shown, renderTimes(text.slice(from))];
}

function linkCommand(command: string): Markup | undefined {
  for (const [pattern, pathOf, words] of commandLinks) {
    const [found, ...parts] = pattern.exec(command) ?? [];
    if (found === undefined) continue;
    const escaped = parts.map((part) => encodeURIComponent(part.replaceAll(/^'|'$/g, '')));
    return html`<a href="${pathOf(...escaped)}">${words}</a>`;
  }
  return undefined;
}

/** Offers a command without a page for copying. Other words in backquotes name fields and settings, and stay as they are. */
function renderCommandWithoutPage(whole: string, command: string): Content {
  const [start, verb] = /^`?npx|^(run |with )/.exec(whole) ?? [];
  return start === undefined ? whole : [verb ?? '', renderCopyableCommand(command)];
}
