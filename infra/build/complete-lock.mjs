/**
 * Completes package-lock.json after a change of dependencies: `npm run lock`.
 *
 * Tools with native parts (oxlint, oxfmt, knip, esbuild) name one optional package per platform. A registry that
 * holds only some of them makes npm leave the others out of the lock file, and `npm ci` then refuses the file. The
 * entries added here name version and platform alone: npm passes over those of other platforms, and fetches the one
 * of its own platform from whatever registry it uses.
 */
import fs from 'node:fs';

const file = new URL('../../package-lock.json', import.meta.url);
const lock = JSON.parse(fs.readFileSync(file, 'utf8'));
const platforms = new Set(['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32']);

/** `@oxlint/binding-linux-x64-musl` -> its platform, as a lock entry says it; undefined when the name says none. */
function platformOf(name) {
  const [os, cpu, abi] = name
    .split('/')
    .at(-1)
    .replace(/^binding-/, '')
    .split('-');
  if (!platforms.has(os)) return undefined;
  const libc = os === 'linux' && abi ? { libc: [abi.startsWith('musl') ? 'musl' : 'glibc'] } : {};
  return { cpu: [cpu], os: [os], ...libc };
}

let added = 0;
for (const [parent, entry] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    const platform = platformOf(name);
    if (key in lock.packages || `${parent}/${key}` in lock.packages || platform === undefined) continue;
    lock.packages[key] = { version, ...(entry.dev && { dev: true }), optional: true, ...platform };
    added += 1;
  }
}
const sorted =
  Object.entries(lock.packages).toSorted?.(([a], [b]) => (a < b ? -1 : 1)) ?? Object.entries(lock.packages);
fs.writeFileSync(
  file,
  `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, undefined, 2)}\n`,
);
process.stdout.write(`${added} platform packages added to package-lock.json\n`);
