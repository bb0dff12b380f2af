/** The walks of docs/daily-tasks.md: sentences that a person reads and a browser carries out. Throws for any other sentence. */

export type Action =
  /** A section of the console. */
  | { kind: 'open'; what: string }
  /** What customers see at `/`. */
  | { kind: 'address' }
  | { kind: 'follow' | 'press'; what: string }
  | { kind: 'type' | 'choose'; what: string; text: string };

export interface WalkStep {
  /** As the page has it. */
  sentence: string;
  action: Action;
  /** What the page then says, `...` for any text, in this order. */
  says: string[];
  /** A picture of the page as it is then, named from `docs`. */
  image?: string;
}

export interface Walk {
  /** It shows what the commands led to, in place of doing the same. */
  isAfterCommands: boolean;
  steps: WalkStep[];
}

const beginning = /^(In the console|What customers then see):$/m;
/** Of a task that only a command does. */
export const noWalk = 'The console has no page for this.';

const bold = String.raw`\*\*(?<what>[^*]+)\*\*`;
const sentences: readonly [RegExp, Action['kind']][] = [
  [new RegExp(`^Open ${bold}$`), 'open'],
  [/^Open the address of the relay$/, 'address'],
  [new RegExp(`^Follow ${bold}$`), 'follow'],
  [new RegExp(`^Press ${bold}$`), 'press'],
  [new RegExp(`^Type \`(?<text>[^\`]+)\` into ${bold}$`), 'type'],
  [new RegExp(`^Choose \`(?<text>[^\`]+)\` in ${bold}$`), 'choose'],
];
const image = /^!\[[^\]]+\]\((images\/[\w-]+\.png)\)$/;

/** @param section a task, from its heading to the next one. Undefined: it has no walk. */
export function walkOf(section: string): Walk | undefined {
  const found = beginning.exec(section);
  if (!found) return undefined;
  const lines = section
    .slice(found.index + found[0].length)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const steps: WalkStep[] = [];
  for (const line of lines) {
    const last = steps.at(-1);
    const picture = image.exec(line)?.[1];
    if (picture !== undefined && last && last.image === undefined) last.image = picture;
    else steps.push(stepIn(line, steps.length + 1));
  }
  return { isAfterCommands: found[1] !== 'In the console', steps };
}

function stepIn(line: string, number: number): WalkStep {
  const [, written, sentence = '', said] = /^(\d+)\. (.+?)\.(?: The page says (.+)\.)?$/.exec(line) ?? [];
  if (Number(written) !== number) throw new Error(`wanted step ${number} of a walk, found: ${line}`);
  return { sentence, action: actionIn(sentence), says: quotedIn(said, line) };
}

function actionIn(sentence: string): Action {
  for (const [pattern, kind] of sentences) {
    const groups = pattern.exec(sentence)?.groups;
    if (groups || pattern.test(sentence)) return { kind, ...groups } as Action;
  }
  throw new Error(`no browser knows what this is: ${sentence}`);
}

/** "`a`, `b` and `c`" */
function quotedIn(said: string | undefined, line: string): string[] {
  if (said === undefined) return [];
  if (!/^`[^`]+`(, `[^`]+`)*( and `[^`]+`)?$/.test(said))
    throw new Error(`what does the page say in: ${line}`);
  return [...said.matchAll(/`([^`]+)`/g)].map(([, text]) => String(text));
}
