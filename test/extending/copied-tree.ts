import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const root = path.join(import.meta.dirname, '..', '..');
interface TestReport {
  testResults: { name: string; assertionResults: { fullName: string; status: string }[] }[];
}

const leftOut = new Set(['node_modules', 'dist', 'cdk.out', 'coverage']);
/** The hidden files that are copied. */
const hidden = new Set(['.npmrc', '.github']);

/** A copy of the sources with a change applied, as a developer has it after following a page of the docs. */
export class CopiedTree {
  readonly #folder = mkdtempSync(path.join(tmpdir(), 'relay-extended-'));

  constructor() {
    for (const name of readdirSync(root))
      if (!leftOut.has(name) && (hidden.has(name) || !name.startsWith('.')))
        cpSync(path.join(root, name), path.join(this.#folder, name), { recursive: true });
    symlinkSync(path.join(root, 'node_modules'), path.join(this.#folder, 'node_modules'));
  }

  /** `fixture`: output of `git diff`; tables around it may be realigned. Rejects with git's error if it no longer applies. */
  async apply(fixture: string): Promise<void> {
    await this.#run('git', [
      'apply',
      '--ignore-whitespace',
      path.join(import.meta.dirname, 'fixtures', fixture),
    ]);
  }

  /** Replaces text that occurs exactly once in a file. Returns a function that undoes it. */
  change(file: string, find: string, replace: string): () => void {
    const name = path.join(this.#folder, file);
    const before = readFileSync(name, 'utf8');
    if (before.split(find).length !== 2) throw new Error(`${file} does not hold this once: ${find}`);
    writeFileSync(
      name,
      before.replace(find, () => replace),
    );
    return () => writeFileSync(name, before);
  }

  /** Rejects with the output of a tool that fails. */
  async tool(name: string, ...parameters: string[]): Promise<string> {
    return this.#run(path.join(root, 'node_modules', '.bin', name), parameters);
  }

  /** Runs tests of the copy. Rejects if a file has none, because it failed to load. */
  async tests(...files: string[]): Promise<{ failed: string[]; passed: string[] }> {
    const report = path.join(this.#folder, 'report.json');
    // The report shows a failed test; the exit code of the run is then nonzero, too.
    await this.tool('vitest', 'run', '--reporter=json', `--outputFile=${report}`, ...files).catch(() => {});
    const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as TestReport;
    const empty = testResults.find(({ assertionResults }) => assertionResults.length === 0);
    if (empty || testResults.length === 0) throw new Error(`no test of ${empty?.name ?? files[0]} ran`);
    const tests = testResults.flatMap(({ name, assertionResults }) =>
      assertionResults.map(({ fullName, status }) => ({
        text: `${path.basename(name)} ${fullName}`,
        status,
      })),
    );
    const textsOf = (wanted: boolean): string[] =>
      tests.filter(({ status }) => (status === 'passed') === wanted).map(({ text }) => text);
    return { failed: textsOf(false), passed: textsOf(true) };
  }

  async node(...parameters: string[]): Promise<string> {
    return this.#run(process.execPath, parameters);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }

  async #run(file: string, parameters: string[]): Promise<string> {
    const run = promisify(execFile)(file, parameters, { cwd: this.#folder, maxBuffer: 16 * 1024 * 1024 });
    return run.then(
      ({ stdout }) => stdout,
      (error: { stdout: string; stderr: string }) => {
        throw new Error(`${file} ${parameters.join(' ')}\n${error.stdout}\n${error.stderr}`);
      },
    );
  }
}
