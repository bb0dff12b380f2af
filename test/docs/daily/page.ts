/**
 * Reads docs/daily-tasks.md: its tasks, their commands with the expected output, and walks: sentences that a person reads
 * and a browser carries out. Throws at any other sentence.
 */
import { readPage } from '../pages.ts';

export interface Task {
  heading: string;
  steps: Step[];
  /** Path in the console, and the resulting path. */
  walk: WalkStep[];
}

export interface Step {
  /** Lines as a shell gets them, in order. */
  commands: string[];
  /** Expected parts of output lines, in this order; `...` matches any text. */
  seen: string[];
  /** Exit code of the last command; earlier ones have 0. */
  code: number;
}

export interface WalkStep {
  /** The sentence on the page. */
  sentence: string;
  action: Action;
  /** Expected texts on the page afterwards, in this order; `...` matches any text. */
  says: string[];
  /** The picture of the resulting page, relative to `docs`. */
  image?: string;
}

export type Action =
  /** A section of the console; without one, what customers see at `/`. */
  | { kind: 'open' | 'address' | 'follow' | 'press'; what: string }
  | { kind: 'type' | 'choose'; what: string; text: string };

const beginning = /^In the console.*:$/m;

export const readTasks = (): Task[] =>
  readPage('docs/daily-tasks.md')
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const heading = section.slice(0, section.indexOf('\n'));
      return { heading, steps: stepsOf(section), walk: walkOf(section) };
    });

const exitCode = /^exit code (\d)$/;

const stepsOf = (section: string): Step[] =>
  [...section.matchAll(/^```sh\n(.*?)^```$\s*(?:^```text\n(.*?)^```$)?/gms)].map(
    ([, commands, text = '']) => {
      const lines = linesOf(text);
      return {
        commands: linesOf(String(commands)),
        seen: lines.filter((line) => !exitCode.test(line)),
        code: Number(lines.map((line) => exitCode.exec(line)?.[1]).find(Boolean) ?? 0),
      };
    },
  );

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line.trim() !== '');

const bold = String.raw`\*\*(?<what>[^*]+)\*\*`;
const sentences: readonly [RegExp, Action['kind']][] = [
  [new RegExp(`^Open ${bold}$`), 'open'],
  [/^Open the address of the relay$/, 'address'],
  [new RegExp(`^Follow ${bold}$`), 'follow'],
  [new RegExp(`^Press ${bold}$`), 'press'],
  [new RegExp(`^Type \`(?<text>[^\`]+)\` into ${bold}$`), 'type'],
  [new RegExp(`^Choose \`(?<text>[^\`]+)\` in ${bold}$`), 'choose'],
];

/** @param section a task, from its heading to the next one */
function walkOf(section: string): WalkStep[] {
  const found = beginning.exec(section);
  if (!found) return [];
  const steps: WalkStep[] = [];
  for (const line of linesOf(section.slice(found.index + found[0].length))) {
    const last = steps.at(-1);
    const image = /^!\[[^\]]+\]\((images\/[\w-]+\.png)\)$/.exec(line.trim())?.[1];
    if (image !== undefined && last) last.image = image;
    else steps.push(stepIn(line.trim(), steps.length + 1));
  }
  return steps;
}

function stepIn(line: string, number: number): WalkStep {
  const [, written, sentence = '', said = ''] =
    /^(\d+)\. (.+?)\.(?: The page says ((?:`[^`]+`(?:, | and )?)+)\.)?$/.exec(line) ?? [];
  const [pattern, kind] = sentences.find(([each]) => each.test(sentence)) ?? [];
  if (Number(written) !== number || !pattern)
    throw new Error(`wanted step ${number} of a walk, which a browser can take, found: ${line}`);
  const action = { kind, ...pattern.exec(sentence)?.groups } as Action;
  return { sentence, action, says: [...said.matchAll(/`([^`]+)`/g)].map(([, text]) => String(text)) };
}

/** A pattern for the lines of a step, with flexible spaces and `...` for any text. */
export function patternOf(seen: string[]): RegExp {
  const escaped = seen.map((line) =>
    line
      .trim()
      .split('...')
      .map((part) =>
        part.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`).replaceAll(/\s+/g, String.raw`\s+`),
      )
      .join('.*?'),
  );
  return new RegExp(escaped.join(String.raw`[\s\S]*?`));
}
