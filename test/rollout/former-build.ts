/** Builds an older version from this repository's history, with that version's build script and today's packages. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const root = path.join(import.meta.dirname, '..', '..');
/** Paths of the build script over time. */
const builders = ['infra/build/build-functions.ts', 'infra/build.ts'];

export interface FormerBuild {
  /** Folder of a function's bundle. Undefined if that version lacks the function. */
  bundle(name: string): string | undefined;
  remove(): void;
}

/** Throws if the history is missing, as in a shallow clone. */
export function formerBuild(commit: string): FormerBuild {
  const folder = mkdtempSync(path.join(tmpdir(), `relay-${commit}-`));
  const archive = execFileSync('git', ['archive', commit], { cwd: root, maxBuffer: 256 * 1024 * 1024 });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  const builder = builders.find((file) => existsSync(path.join(folder, file)));
  if (builder === undefined) throw new Error(`${commit} has no build that is known here`);
  execFileSync(process.execPath, [builder], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  return {
    bundle(name) {
      const found = path.join(folder, 'dist', name);
      return existsSync(found) ? found : undefined;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
