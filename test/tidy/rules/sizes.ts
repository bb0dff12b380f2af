/** How long files and functions are, and how many parameters a function takes: oxlint counts. */
import { isProduct, type Source } from '../sources.ts';

/** Runs oxlint with the parameters; a run with findings ends in an error that has the output too. */
export type RunOxlint = (parameters: string[]) => Promise<{ stdout: string }>;

export async function largeOrWide(
  run: RunOxlint,
  folders: string[] = ['shared', 'functions', 'infra'],
): Promise<string[]> {
  const { stdout } = await run(['-c', 'test/tidy.oxlintrc.json', '-f', 'unix', ...folders]).catch(
    (error: { stdout: string }) => error,
  );
  // `shared/wire/public/account.ts:12:3: words [Error/eslint(rule)]`: without the line, which every edit moves.
  const findings = stdout.split('\n').filter((line) => line.includes(' [Error'));
  if (findings.length === 0 && stdout.trim() !== '') throw new Error(`oxlint: ${stdout}`);
  return findings.map((line) => line.replace(/:\d+:\d+: /, ': ').replace(/ \[.*/, '')).toSorted();
}

export function medianLines(sources: Source[]): number {
  const lengths = sources
    .filter(isProduct)
    .map(({ text }) => text.split('\n').length)
    .toSorted((a, b) => a - b);
  return Number(lengths[Math.floor(lengths.length / 2)]);
}
