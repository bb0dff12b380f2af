/**
 * Writes what the product does on fixed input into a folder, and prints a hash for each part: run it before and after a
 * change that should change nothing. `node test/corpus/write-corpus.ts FOLDER`; two folders are compared with `diff -r`.
 * Parts: answers and requests (bytes to clients and upstreams, log lines, books), functions (DynamoDB requests), help of every
 * command, the synthesized template, sizes of what is loaded first.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { calls } from './calls.ts';
import { functionCalls } from './function-calls.ts';

const root = path.join(import.meta.dirname, '../..');
const [folder = ''] = process.argv.slice(2);
if (folder === '') throw new Error('usage: node test/corpus/write-corpus.ts FOLDER');

const hashes = new Map<string, ReturnType<typeof createHash>>();

function put(name: string, text: string): void {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  const part = name.split('/')[0] ?? '';
  const hash = hashes.get(part) ?? createHash('sha256');
  hashes.set(part, hash.update(name).update(text));
}

async function help(...command: string[]): Promise<string> {
  const program = path.join(root, 'infra/ops/cli/main.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...command, '--help'], {
    cwd: root,
  });
  return stdout;
}

/** Commands of a help text, and theirs. */
async function helps(command: string[] = []): Promise<void> {
  const text = await help(...command);
  put(`help/${command.join('-') || 'main'}`, text);
  const [below = ''] = (text.split(/^Commands:$/m)[1] ?? '').split(/\n\n/);
  for (const [, name = ''] of below.matchAll(/^ {2}([a-z][\w-]*)/gm))
    if (name !== 'help' && command.length < 2) await helps([...command, name]);
}

for await (const [name, text] of calls()) put(name, text);
for (const [name, text] of await functionCalls(root)) put(name, text);
await helps();
const templates = readdirSync(path.join(root, 'cdk.out')).filter((name) => name.endsWith('.template.json'));
for (const name of templates.toSorted())
  put(`template/${name}`, readFileSync(path.join(root, 'cdk.out', name), 'utf8'));
for (const [part, hash] of hashes) process.stdout.write(`${hash.digest('hex').slice(0, 16)}  ${part}\n`);
process.exit(0);
