/**
 * Reads docs/daily-tasks.md: its tasks, the commands of each and what is seen after them, and walks: sentences that a person
 * reads and a browser carries out. Throws for any other sentence.
 */
import { readPage } from '../pages.ts';

export interface Task {
  heading: string;
  steps: Step[];
  /** In the console, and where it leads to. */
  walk: WalkStep[];
}

export interface Step {
  /** Lines as a shell gets them, in order. */
  commands: string[];
  /** Lines that are seen in this order, `...` for any text; what they say may be part of a line. */
  seen: string[];
  /** Of the last command; those before it have 0. */
  code: number;
}

export interface WalkStep {
  /** As the page has it. */
  sentence: string;
  action: Action;
  /** What the page then says, `...` for any text, in this order. */
  says: string[];
  /** A picture of the page as it is then, named from `docs`. */
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

/** What matches the lines of a step: blanks are as wide as they are, `...` is any text. */
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
