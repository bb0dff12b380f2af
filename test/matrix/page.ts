/** Writes the page of the matrix: its counts, and the places that are not sent. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { AnswerCell } from './answer-cells.ts';
import { dialects, type Dialect } from './endpoints.ts';
import { isInside } from './places.ts';
import type { Cell } from './requests.ts';

export const pagePath = path.join(import.meta.dirname, '../../docs/translation.md');

export function renderPage(requests: readonly Cell[], answers: readonly AnswerCell[]): string {
  const lines = [
    '# Translation',
    '',
    `Each field, block, item and event of \`openai\` ${versionOf('openai')} and \`@anthropic-ai/sdk\` ${versionOf('@anthropic-ai/sdk')} at each dialect, as \`test/matrix\``,
    'sees it. `node infra/bootstrap/bootstrap.mjs test/matrix/write-page.ts` writes this page.',
    '',
    '- **Carried**: it goes up, or down, as it came. **Mended**: in other words. **Refused**: 400 with its name.',
    '- **Named**: left out, and listed in `x-relay-dropped`. **Moot**: without effect, for a reason in `test/matrix/reasons.ts`.',
    '',
    'Places that are carried/mended/named/refused/moot in requests, and carried/mended/moot in answers, whole and streamed:',
    '',
    '<!-- oxfmt-ignore -->',
    '| client | upstream | requests | answers |',
    '| --- | --- | --- | --- |',
    ...dialects.flatMap((endpoint) =>
      dialects.map((dialect) => {
        const isPair = (cell: { endpoint: Dialect; dialect: Dialect }): boolean =>
          cell.endpoint === endpoint && cell.dialect === dialect;
        const sent = countOutcomes(requests.filter(isPair), [
          'carried',
          'mended',
          'named',
          'refused',
          'moot',
        ]);
        return `| ${endpoint} | ${dialect} | ${sent} | ${countOutcomes(answers.filter(isPair), ['carried', 'mended', 'moot'])} |`;
      }),
    ),
    '',
    'Named (n) or refused (r) at chat, messages and responses; `-`: neither. What is inside goes with it.',
    ...dialects.flatMap((endpoint) => [
      '',
      `**From ${endpoint}**`,
      '',
      ...renderExceptions(requests.filter((cell) => cell.endpoint === endpoint)),
    ]),
    '',
  ];
  return lines.join('\n');
}

const versionOf = (name: string): string => {
  const manifest = path.join(import.meta.dirname, `../../node_modules/${name}/package.json`);
  return String(JSON.parse(readFileSync(manifest, 'utf8')).version);
};

const countOutcomes = (cells: readonly { outcome: string }[], outcomes: readonly string[]): string =>
  outcomes.map((each) => cells.filter(({ outcome }) => outcome === each).length).join('/');

/** Groups the places by their outcome at each dialect. */
function renderExceptions(cells: readonly Cell[]): string[] {
  const marks = new Map<string, string>();
  for (const [place, own] of Map.groupBy(cells, (cell) => cell.path)) {
    const mark = dialects
      .map((dialect) => markOf(own.find((cell) => cell.dialect === dialect)?.outcome))
      .join('');
    const isPart = [...marks].some(([outer, each]) => each === mark && isInside(place, outer));
    if (/[nr]/.test(mark) && !isPart) marks.set(place, mark);
  }
  const byMark = Map.groupBy(marks.keys(), (place) => marks.get(place) ?? '');
  return [...byMark]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(
      ([mark, places]) =>
        `- \`${mark}\` ${shorten(places)
          .map((each) => `\`${each}\``)
          .join(', ')}`,
    );
}

const markOf = (outcome: string | undefined): string =>
  outcome === 'named' ? 'n' : outcome === 'refused' ? 'r' : '-';

/** Lists fields with the same outcome everywhere once, and those of one object or list together. */
function shorten(places: readonly string[]): string[] {
  const plain = places.map((place) =>
    place
      .replace(/^(?:messages\[\w+\]|input\[message \w+\])\./, '')
      .replace(/^input\[\w+\]\.output/, 'output')
      .replace(/_\d{8}\]$/, '_*]')
      .replace(/^.{40,}(\.\w+\[\w+\]\.\w+\[\])$/, '…$1'),
  );
  const leafOf = (place: string): string => /\.([\w[\]]+)$/.exec(place)?.[1] ?? place;
  const byLeaf = Map.groupBy(new Set(plain), leafOf);
  const short = [...byLeaf].flatMap(([leaf, same]) =>
    same.length > 2 && leaf !== 'content[]' ? [`….${leaf}`] : same,
  );
  const byList = Map.groupBy(short, (place) => /^(.*)\[[^[\]]+\]$/.exec(place)?.[1] ?? place);
  const listed = [...byList].flatMap(([list, same]) =>
    same.length > 1 ? [`${list}[${same.map((each) => each.slice(list.length + 1, -1)).join(', ')}]`] : same,
  );
  const byObject = Map.groupBy(listed, (place) => /^([\w[\]]+)\.[\w[\]]+$/.exec(place)?.[1] ?? place);
  return [...byObject].flatMap(([object, same]) =>
    same.length > 1 ? [`${object}.(${same.map((each) => each.slice(object.length + 1)).join(', ')})`] : same,
  );
}
