/**
 * Updates the changelog for a release. Only package.json holds the version; pages that name release files are rewritten to match it.
 *
 *     node infra/build/changelog.mjs release       dates the section of package.json's version, and renames files in the pages
 *     node infra/build/changelog.mjs notes v0.1.0  prints what the release says
 *
 * `npm version` runs the first one between the new version and its commit, the release workflow the second one.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

const unreleased = '## Unreleased';

/**
 * Adds the release's heading below an empty heading for the next one, or dates a section that was prepared. Throws if there is nothing
 * to release.
 */
function releaseOf(text, { version, date, isTagged }) {
  // `npm version` would move the tag.
  if (isTagged) throw new Error(`${version} is released already`);
  const [before, after, ...more] = text.split(`${unreleased}\n`);
  if (after === undefined || more.length > 0) throw new Error(`wanted one heading "${unreleased}"`);
  const isEmpty = /^\s*(## |$)/.test(after);
  const heading = headingOf(text, version);
  if (heading !== undefined && !isEmpty) throw new Error(`move the unreleased lines into "${heading}"`);
  if (heading !== undefined) return text.replace(heading, `## ${version} - ${date}`);
  if (isEmpty) throw new Error('nothing is unreleased');
  if (!version.endsWith('.0') && /^### (Added|Deprecated|Removed)$/m.test(after.split('\n## ')[0]))
    throw new Error('a patch may contain only fixes: choose minor or major (docs/compatibility.md)');
  return `${before}${unreleased}\n\n## ${version} - ${date}\n${after}`;
}

/** Reads the notes of a release. Throws if it has no dated heading. */
function notesOf(text, version) {
  const heading = headingOf(text, version);
  if (heading === undefined) throw new Error(`docs/CHANGELOG.md has no heading "## ${version} - <date>"`);
  const [notes] = text.slice(text.indexOf(heading) + heading.length).split('\n## ');
  return `${makeLinksAbsolute(notes.trim(), version)}\n`;
}

/** A release page would resolve relative links against its own address. GitHub's workflows set both variables. */
function makeLinksAbsolute(text, version) {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository } = process.env;
  if (repository === undefined) return text;
  const page = `${server}/${repository}/blob/v${version}/docs/CHANGELOG.md`;
  return text.replaceAll(/\]\(([^)\s]+)\)/g, (_, link) => `](${new URL(link, page)})`);
}

const headingOf = (text, version) =>
  text.split('\n').find((line) => line.startsWith(`## ${version} - `) && /\d{4}-\d{2}-\d{2}$/.test(line));

/** Matches versions in names of released files and images, and those that examples install. */
const releasedVersion =
  /(?<=\brelay-)\d+\.\d+\.\d+(?=\.tgz|\.(?:template|openapi|cdx)\.json|-assets\.zip)|(?<=\/server:v|"release" \{ default = "|\(repository, ')\d+\.\d+\.\d+/g;
const pagesWithVersion = ['docs/construct.md', 'docs/server.md', '.github/CONTRIBUTING.md', 'examples'];

const git = (...words) => execFileSync('git', words, { encoding: 'utf8' }).trim();

const read = (file) => fs.readFileSync(file, 'utf8');

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [what, tag] = process.argv.slice(2);
  const { version } = JSON.parse(read('package.json'));
  const changelog = read('docs/CHANGELOG.md');
  if (what === 'release') {
    const date = new Date().toISOString().slice(0, 10);
    const isTagged = git('tag', '--list', `v${version}`) !== '';
    fs.writeFileSync('docs/CHANGELOG.md', releaseOf(changelog, { version, date, isTagged }));
    for (const page of git('ls-files', ...pagesWithVersion).split('\n'))
      fs.writeFileSync(page, read(page).replaceAll(releasedVersion, version));
  } else if (what === 'notes' && tag === `v${version}`) process.stdout.write(notesOf(changelog, version));
  else throw new Error(`wanted: release, or notes v${version}`);
}
