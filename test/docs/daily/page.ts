/** Reads docs/daily-tasks.md: its tasks, the commands of each and what is seen after them, its walks. */
import { readPage } from '../pages.ts';
import { noWalk, walkOf, type Walk } from './walk.ts';

export interface Step {
  /** Lines as a shell gets them, in order. */
  commands: string[];
  /** Lines that are seen in this order, `...` for any text; what they say may be part of a line. */
  seen: string[];
  /** Of the last command; those before it have 0. */
  code: number;
}

export interface Task {
  heading: string;
  /** As the page's table has them. Steps of a walk are undefined where there is none. */
  counted: number;
  countedSteps: number | undefined;
  wrongStart: string;
  steps: Step[];
  walk: Walk | undefined;
}

const page = 'docs/daily-tasks.md';
const exitCode = /^exit code (\d)$/;

export function readTasks(): Task[] {
  const text = readPage(page);
  const rows = new Map(
    [...text.matchAll(/^\| \[([^\]]+)\]\(#[^)]+\) +\| +(\d+) +\| +(\d+|-) +\| (.*) \|$/gm)].map(
      ([, heading, counted, steps, start]) => [
        String(heading),
        {
          counted: Number(counted),
          countedSteps: steps === '-' ? undefined : Number(steps),
          wrongStart: String(start).trim(),
        },
      ],
    ),
  );
  const tasks = text
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const heading = section.slice(0, section.indexOf('\n'));
      const row = rows.get(heading);
      if (row === undefined) throw new Error(`the table of ${page} has no line of "${heading}"`);
      const walk = walkOf(section);
      if ((walk === undefined) !== section.includes(noWalk))
        throw new Error(`"${heading}" has either a walk or "${noWalk}"`);
      return Object.assign({ heading, steps: stepsOf(section), walk }, row);
    });
  if (tasks.length !== rows.size) throw new Error(`the table of ${page} has lines without a section`);
  return tasks;
}

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
