/** Builds the functions and synthesizes the stack when one of their inputs changed. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { nodeOfRepository } from './install.mjs';
import { environment, runStep } from './processes.mjs';
import { digest, inRoot, read } from './repository.mjs';

const stamp = inRoot('dist', 'meta', 'build.stamp');
const template = inRoot('cdk.out', 'relay.template.json');

/** The files and folders that `infra/build/build-functions.ts` and `infra/stack/app.ts` read. */
const inputs = [
  'functions',
  'shared',
  'infra',
  'package.json',
  'package-lock.json',
  'cdk.json',
  'relay.json',
  'tsconfig.json',
];
/** Folders inside `infra` that the build does not read: the local stack, the operators' tool, the deployment. */
const notInputs = new Set(['infra/local', 'infra/ops', 'infra/deploy']);

/** Lists every input file below a folder, in a fixed order. */
function filesOf(name) {
  const stat = fs.statSync(inRoot(name), { throwIfNoEntry: false });
  if (stat === undefined || notInputs.has(name)) return [];
  if (!stat.isDirectory()) return [name];
  // oxlint-disable-next-line unicorn/no-array-sort -- Node 18 has no toSorted.
  const entries = fs.readdirSync(inRoot(name)).sort();
  return entries.flatMap((entry) => filesOf(`${name}/${entry}`));
}

/**
 * Hashes the inputs of the build and the template. The template is included because a synthesis for another
 * stage overwrites it.
 */
function buildState() {
  const hash = createHash('sha256');
  for (const file of inputs.flatMap(filesOf))
    hash
      .update(`${file}\0`)
      .update(fs.readFileSync(inRoot(file)))
      .update('\0');
  return `${hash.digest('hex')} ${digest(read(template) ?? '')}`;
}

export const isBuilt = () => read(stamp) === buildState();

export const build = () =>
  runStep({
    name: 'the build',
    file: nodeOfRepository(),
    args: ['infra/build/build-functions.ts'],
    env: environment(),
  });

export async function buildAndSynthesize() {
  await build();
  const fresh = inRoot('dist', `cdk.${process.pid}.new`);
  try {
    await runStep({
      name: 'the synthesis',
      file: nodeOfRepository(),
      args: ['infra/stack/app.ts'],
      env: environment({ CDK_OUTDIR: fresh, CDK_VALIDATION: 'false' }),
    });
    moveInto(fresh, inRoot('cdk.out'));
  } finally {
    fs.rmSync(fresh, { recursive: true, force: true });
  }
  fs.writeFileSync(stamp, buildState());
}

/**
 * Moves new files into the folder and keeps the others, because a running stack still reads its own assets.
 * Moves assets before the template that refers to them.
 */
function moveInto(from, to) {
  fs.mkdirSync(to, { recursive: true });
  const entries = fs.readdirSync(from, { withFileTypes: true });
  for (const entry of [
    ...entries.filter((e) => e.isDirectory()),
    ...entries.filter((e) => !e.isDirectory()),
  ]) {
    const target = path.join(to, entry.name);
    const old = `${target}.${process.pid}.old`;
    if (entry.isDirectory() && fs.existsSync(target)) fs.renameSync(target, old);
    fs.renameSync(path.join(from, entry.name), target);
    fs.rmSync(old, { recursive: true, force: true });
  }
}
