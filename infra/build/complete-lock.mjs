/**
 * Completes package-lock.json after a change of dependencies: `npm run lock`.
 *
 * Tools with native parts (oxlint, oxfmt, knip, esbuild) depend on one optional package per platform. If the
 * registry has only some of them, npm omits the others from the lock file, and `npm ci` then rejects the
 * file. The entries added here contain only version and platform: npm skips those of other platforms, and
 * downloads the one of its own platform from the registry that it is configured to use.
 */
import fs from 'node:fs';

const file = new URL('../../package-lock.json', import.meta.url);
const lock = JSON.parse(fs.readFileSync(file, 'utf8'));
const platforms = new Set(['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32']);

/**
 * The platform in a package name such as `@oxlint/binding-linux-x64-musl`, in the fields of a lock entry.
 * Undefined when the name contains none.
 */
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
