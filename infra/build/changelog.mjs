/**
 * The changelog at a release.
 *
 *     node infra/build/changelog.mjs release       what is unreleased gets the version of package.json and the date of today
 *     node infra/build/changelog.mjs notes v0.1.0  prints what the release says
 *
 * `npm version` runs the first one between the new version and its commit, the release workflow the second one.
 */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

const unreleased = '## Unreleased';

/** Adds the release's heading below an empty heading for the next one. Throws if there is nothing to release. */
function releaseOf(text, { version, date }) {
  const [before, after, ...more] = text.split(`${unreleased}\n`);
  if (after === undefined || more.length > 0) throw new Error(`wanted one heading "${unreleased}"`);
  if (headingOf(text, version) !== undefined) throw new Error(`${version} is released already`);
  if (/^\s*(## |$)/.test(after)) throw new Error('nothing is unreleased');
  return `${before}${unreleased}\n\n## ${version} - ${date}\n${after}`;
}

/** Reads the notes of a release. Throws if it has no dated heading. */
function notesOf(text, version) {
  const heading = headingOf(text, version);
  if (heading === undefined) throw new Error(`docs/CHANGELOG.md has no heading "## ${version} - <date>"`);
  const [notes] = text.slice(text.indexOf(heading) + heading.length).split('\n## ');
  return `${notes.trim()}\n`;
}

const headingOf = (text, version) =>
  text.split('\n').find((line) => line.startsWith(`## ${version} - `) && /\d{4}-\d{2}-\d{2}$/.test(line));

const read = (file) => fs.readFileSync(file, 'utf8');

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [what, tag] = process.argv.slice(2);
  const { version } = JSON.parse(read('package.json'));
  const changelog = read('docs/CHANGELOG.md');
  if (what === 'release') {
    const date = new Date().toISOString().slice(0, 10);
    fs.writeFileSync('docs/CHANGELOG.md', releaseOf(changelog, { version, date }));
    fs.writeFileSync(
      'docs/construct.md',
      read('docs/construct.md').replaceAll(/relay-\d+\.\d+\.\d+\.tgz/g, `relay-${version}.tgz`),
    );
  } else if (what === 'notes' && tag === `v${version}`) process.stdout.write(notesOf(changelog, version));
  else throw new Error(`wanted: release, or notes v${version}`);
}
