import { beforeAll, describe, expect, it } from 'vitest';
import { readPage } from '../docs/pages.ts';
import { findBreaks, readRemovedNames } from './compare-names.ts';
import { collectPublicNames, readReleasedNames, type PublicNames } from './public-names.ts';

const { names: released } = readReleasedNames();
let current: PublicNames;
beforeAll(async () => {
  current = await collectPublicNames();
});

/** Returns the released names with one edit. */
function changed(kind: string, edit: (names: Record<string, string>) => void): PublicNames {
  const names = { ...released[kind] };
  edit(names);
  return { ...released, [kind]: names };
}

it('every name of the last release is still there, unless the changelog lists it as removed', () => {
  const breaks = findBreaks(released, current, readRemovedNames(readPage('docs/CHANGELOG.md')));
  const advice =
    'keep these names next to new ones; if docs/compatibility.md allows this version to remove one, add a line such as `commands key rotate` under "### Removed" of "## Unreleased" in docs/CHANGELOG.md';
  expect({ advice, breaks }).toEqual({ advice, breaks: [] });
});

it('the snapshot has names of every kind', () => {
  for (const [kind, names] of Object.entries(current))
    expect(Object.keys(names).length, `names of ${kind}`).toBeGreaterThan(kind === 'tables' ? 15 : 20);
});

describe('a change that only a major version may make fails by name', () => {
  it.each([
    ['answers', 'POST /v1/chat/completions 200.choices[].finish_reason'],
    ['answers', 'refusal.error.code'],
    ['answers', 'webhook notice.created'],
    ['answers', 'webhook notice header x-relay-signature'],
    ['attributes', 'keys.account'],
    ['attributes', 'channels.models'],
    ['commands', 'key rotate'],
    ['commands', 'grant new --reason'],
    ['ledger', 'call.charge'],
    ['log', 'request_id'],
    ['members', 'Relay.baseUrl'],
    ['metrics', 'Requests'],
    ['outputs', 'key list --csv hint'],
    ['outputs', 'key list --json[].hint'],
    ['outputs', 'statement --json.lines[].calls'],
    ['options', 'frontDoor'],
    ['requests', 'POST /v1/chat/completions.model'],
    ['props', 'RelayProps.alarmEmail'],
    ['settings', 'unpriced_models'],
    ['tables', 'relay-ledger index by_id'],
    ['template', 'TablesledgerB795704C'],
  ])('%s: %s is renamed', (kind, name) => {
    expect(released[kind]).toHaveProperty([name]);
    const renamed = changed(kind, (names) => {
      names[`${name}X`] = names[name] ?? '';
      delete names[name];
    });
    const fault = `${kind} ${name}: removed or renamed; only a major version may do that`;
    expect(findBreaks(released, renamed)).toContain(fault);
    expect(findBreaks(released, renamed, new Set([`${kind} ${name}`]))).not.toContain(fault);
  });

  it.each([
    ['a value is refused', 'options', 'frontDoor', '"cloudfront" | undefined', 'no longer '],
    ['an attribute is required', 'attributes', 'keys.budget', 'map', 'required now'],
    ['a new attribute is required', 'attributes', 'keys.owner', 'string', 'new and required'],
    [
      'a new field of a request is required',
      'requests',
      'POST /v1/messages.team',
      'string',
      'new and required',
    ],
    ['a new option of a command is required', 'commands', 'key new --owner', 'text', 'new and required'],
    ['a resource has another type', 'template', 'TablesledgerB795704C', 'AWS::DynamoDB::Table', 'no longer '],
    ['an answer may have any value', 'answers', 'POST /v1/chat/completions 200.id', 'any', 'no longer '],
    ['a code of errors is renamed', 'answers', 'refusal.error.code', '"relay_shut" | string', 'no longer '],
    ['a command exits with another code', 'outputs', 'key list exit code, refused', '1', 'no longer '],
    ['a field of --json has another type', 'outputs', 'key list --json[].hint', 'number', 'no longer '],
    ['a metric loses a dimension', 'metrics', 'Requests', 'stack', 'no longer '],
  ])('%s', (_what, kind, name, text, fault) => {
    const breaks = findBreaks(
      released,
      changed(kind, (names) => (names[name] = text)),
    );
    expect(breaks).toEqual([expect.stringContaining(`${kind} ${name}: ${fault}`)]);
  });
});

it.each([
  ['any text in place of a list of values', 'options', 'awsClient', 'string | undefined'],
  ['any value in place of a map', 'attributes', 'keys.budget', 'any | undefined'],
  ['a new optional attribute', 'attributes', 'keys.owner', 'string | undefined'],
  ['a new map with a required member', 'settings', 'regions', 'map'],
  ['a new command', 'commands', 'key lend', 'command'],
  ['a new resource', 'template', 'Tablesowners', 'AWS::DynamoDB::GlobalTable'],
  [
    'another value',
    'options',
    'frontDoor',
    '"cloudfront" | "cloudfront-api" | "api" | "private-api" | "balancer" | undefined',
  ],
])('%s passes', (_what, kind, name, text) => {
  expect(
    findBreaks(
      released,
      changed(kind, (names) => (names[name] = text)),
    ),
  ).toEqual([]);
});

it('only names listed under Removed in the unreleased section count as removed', () => {
  const changelog =
    '## Unreleased\n\n### Added\n\n- `a`\n\n### Removed\n\n- `commands key rotate`\n\n### Fixed\n\n- `b`\n\n## 0.1.0\n\n### Removed\n\n- `c`\n';
  expect(readRemovedNames(changelog)).toEqual(new Set(['commands key rotate']));
  expect(readRemovedNames('## Unreleased\n\n## 0.1.0\n\n### Removed\n\n- `c`\n')).toEqual(new Set());
});
