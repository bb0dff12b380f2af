import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const bootstrap = path.resolve(import.meta.dirname, '../../infra/bootstrap');
let root: string;

const file = (...names: string[]): string => path.join(root, ...names);
const write = (name: string, content: string): void => {
  mkdirSync(path.dirname(file(name)), { recursive: true });
  writeFileSync(file(name), content);
};
const steps = (): string[] => readFileSync(file('steps'), 'utf8').trim().split('\n');

const note = (step: string) => `import fs from 'node:fs';\nfs.appendFileSync('steps', '${step}\\n');\n`;

/** A repository without packages: its build and its synthesis only record that they ran. */
function writeRepository(): void {
  root = mkdtempSync(path.join(tmpdir(), 'relay-bootstrap-'));
  cpSync(bootstrap, file('infra/bootstrap'), { recursive: true });
  write('package.json', '{"name":"small","version":"1.0.0","type":"module"}');
  write(
    'package-lock.json',
    '{"name":"small","version":"1.0.0","lockfileVersion":3,"packages":{"":{"name":"small","version":"1.0.0"}}}',
  );
  write('steps', '');
  write(
    'infra/build/build-functions.ts',
    `${note('build')}fs.mkdirSync('dist/meta', { recursive: true });\nconsole.log('noise');\n`,
  );
  write(
    'infra/stack/app.ts',
    `${note('synthesis')}const out = process.env.CDK_OUTDIR ?? 'cdk.out';
fs.mkdirSync(out + '/asset.1', { recursive: true });
fs.writeFileSync(out + '/asset.1/index.mjs', '');
fs.writeFileSync(out + '/relay.template.json', '{}');
console.log('from the app');
`,
  );
  write(
    'infra/local/main.ts',
    `${note('command')}console.log('from the command', process.argv[2]);\nprocess.exitCode = Number(process.argv[3] ?? 0);\n`,
  );
  write('functions/chat.ts', '');
}
beforeEach(writeRepository);
afterEach(() => rmSync(root, { recursive: true }));

/** Writes the list of an installation. Running npm takes half a second. */
const useInstalled = (): void => write('node_modules/.package-lock.json', '{"packages":{}}');

const run = async (...command: string[]) => {
  const child = spawn(process.execPath, ['infra/bootstrap/bootstrap.mjs', ...command], {
    cwd: root,
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number]>,
  ]);
  return { stdout, stderr, code };
};

describe('bootstrap', () => {
  it('installs and builds once, with one line for both, and passes the command’s output and exit code on', async () => {
    expect(await run('--built', 'infra/local/main.ts', 'hello', '7')).toEqual({
      stdout: 'from the command hello\n',
      stderr: 'installing packages, then building\n',
      code: 7,
    });
    expect(await run('--built', 'infra/local/main.ts')).toMatchObject({ stderr: '', code: 0 });
    expect(steps()).toEqual(['build', 'synthesis', 'command', 'command']);
  });

  it('keeps Node’s compile cache for the next run, unless the caller chooses its folder', async () => {
    useInstalled();
    write('infra/local/main.ts', 'console.log(process.env.NODE_COMPILE_CACHE);');
    const kept = file('node_modules', '.cache', 'node');
    vi.stubEnv('NODE_COMPILE_CACHE', undefined);
    expect((await run('infra/local/main.ts')).stdout).toBe(`${kept}\n`);
    expect(readdirSync(kept)).not.toEqual([]);
    vi.stubEnv('NODE_COMPILE_CACHE', file('elsewhere'));
    expect((await run('infra/local/main.ts')).stdout).toBe(`${file('elsewhere')}\n`);
    vi.unstubAllEnvs();
  });

  it('rebuilds if an input changed, or if another template replaced this one', async () => {
    useInstalled();
    await run('--built', 'infra/local/main.ts');
    write('functions/chat.ts', 'changed');
    await run('--built', 'infra/local/main.ts');
    write('cdk.out/relay.template.json', '{"of":"another stage"}');
    await run('--built', 'infra/local/main.ts');
    write('infra/local/other.ts', 'no input of the build');
    await run('--built', 'infra/local/main.ts');
    expect(steps().filter((step) => step === 'build')).toHaveLength(3);
  });

  it('installs again when the lock file changed', async () => {
    useInstalled();
    const lock = readFileSync(file('package-lock.json'), 'utf8');
    expect((await run('infra/local/main.ts')).stderr).toBe('');
    write('package.json', '{"name":"small","version":"1.0.0","dependencies":{"absent":"1.0.0"}}');
    write(
      'package-lock.json',
      lock.replace('"packages":{', '"packages":{"node_modules/absent":{"version":"2.0.0"},'),
    );
    const { stderr, code } = await run('infra/local/main.ts');
    expect(stderr).toMatch(/^installing packages\n[^]*npm ci failed/);
    expect(code).toBe(1);
  });

  it('leaves no lock on a full disk, because nothing would remove it', async () => {
    useInstalled();
    await run('infra/local/main.ts');
    const command = 'ulimit -f 0; exec "$0" infra/bootstrap/bootstrap.mjs --built infra/local/main.ts';
    const full = spawn('sh', ['-c', command, process.execPath], { cwd: root });
    const [stderr] = await Promise.all([text(full.stderr), once(full, 'exit')]);
    expect(stderr).toMatch(/EFBIG|file too large/i);
    expect(await run('--built', 'infra/local/main.ts')).toMatchObject({ stderr: 'building\n', code: 0 });
  });

  it('reports in one sentence that the registry cannot be reached', async () => {
    const dependencies = { absent: '2.0.0' };
    const absent = { version: '2.0.0', resolved: 'http://127.0.0.1:1/absent.tgz' };
    const root = { name: 'small', version: '1.0.0', dependencies };
    write('package.json', JSON.stringify(root));
    write(
      'package-lock.json',
      JSON.stringify({ ...root, lockfileVersion: 3, packages: { '': root, 'node_modules/absent': absent } }),
    );
    write('.npmrc', 'fetch-retries=0');
    const { stderr, code } = await run('infra/local/main.ts');
    expect(stderr).toMatch(
      /npm ci failed: the npm registry is unreachable\. Check .*, then re-run the command\.\n$/,
    );
    expect(stderr).not.toContain('npm error');
    expect(code).toBe(1);
  });

  it('leaves stdout to the app, and does not synthesize twice for it', async () => {
    useInstalled();
    expect(await run('infra/stack/app.ts')).toMatchObject({ stdout: 'from the app\n', code: 0 });
    expect(steps()).toEqual(['build', 'synthesis']);
  });

  it('shows the output of a failed build, and does not run the command', async () => {
    useInstalled();
    write('infra/build/build-functions.ts', "console.error('line 3: wrong');\nprocess.exit(1);\n");
    const { stdout, stderr, code } = await run('--built', 'infra/local/main.ts');
    expect(stderr).toContain('line 3: wrong\nthe build failed (exit 1).');
    expect({ stdout, code }).toEqual({ stdout: '', code: 1 });
  });

  it('ends a step and all its processes at Ctrl-C, and resumes there the next time', async () => {
    useInstalled();
    write(
      'infra/build/build-functions.ts',
      `${note('build')}import { spawn } from 'node:child_process';
const child = spawn('sleep', ['600'], { stdio: 'inherit' });
fs.writeFileSync('sleeper', String(child.pid));
process.on('SIGTERM', () => {});
setInterval(() => {}, 1000);
`,
    );
    const child = spawn(
      process.execPath,
      ['infra/bootstrap/bootstrap.mjs', '--built', 'infra/stack/other.ts'],
      {
        cwd: root,
      },
    );
    const stderr = text(child.stderr);
    await vi.waitFor(() => expect(readFileSync(file('sleeper'), 'utf8')).not.toBe(''), { timeout: 30_000 });
    const fromMs = performance.now();
    // The terminal's, and the same one that npm passes on.
    child.kill('SIGINT');
    await sleep(20);
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([130, null]);
    expect(performance.now() - fromMs).toBeLessThan(2000);
    expect(await stderr).toMatch(/^[^\n]*\nstopped; the next run resumes here\n$/);
    const sleeper = Number(readFileSync(file('sleeper'), 'utf8'));
    await vi.waitFor(() => expect(() => process.kill(sleeper, 0)).toThrow('ESRCH'));
  });

  it('does not build for a command that needs no build', async () => {
    useInstalled();
    expect(await run('infra/local/main.ts', 'hello')).toMatchObject({ stdout: 'from the command hello\n' });
    expect(steps()).toEqual(['command']);
  });

  it('builds once if two commands start at the same time', async () => {
    useInstalled();
    await Promise.all([run('--built', 'infra/local/main.ts'), run('--built', 'infra/local/main.ts')]);
    expect(steps().toSorted()).toEqual(['build', 'command', 'command', 'synthesis']);
  });
});
