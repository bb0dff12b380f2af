/** Prints views and plans of the configuration. */
import { keyAttributes } from '../../../../shared/config/config-rows.ts';
import type { Snapshot } from '../../../../shared/config/snapshot.ts';
import type { ConfigPlan } from '../../../../shared/operate/config/apply-rows.ts';
import type { CheckedRows } from '../../../../shared/operate/config/check-rows.ts';
import type { ConfigDiff } from '../../../../shared/operate/config/diff-rows.ts';
import { nameOf, type Finding } from '../../../../shared/operate/config/findings.ts';
import type { AttributeChange, RowDifference } from '../../../../shared/operate/config/row-changes.ts';
import type { ListedVersions, ShownVersion } from '../../../../shared/operate/config/show-versions.ts';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { csvRows } from '../terminal/csv.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { chargeTable } from './prices.ts';

const shownCharactersMax = 160;

/** Throws a Failure when there are problems. */
export function printChecked(terminal: Terminal, checked: CheckedRows): void {
  const { format, print } = terminal;
  const { rows, problems, warnings } = checked;
  if (format === 'json') terminal.printJson(checked);
  else if (format === 'csv') terminal.printCsv(csvRows(findingColumns, [...problems, ...warnings]));
  else {
    for (const finding of problems) print(`problem  ${nameOf(finding)}: ${finding.problem}`);
    for (const finding of warnings) print(`warning  ${nameOf(finding)}: ${finding.warning}`);
  }
  const summary = `${rows} rows, ${problems.length} with a problem, ${warnings.length} with a warning`;
  if (problems.length > 0) throw new Failure(summary);
  if (format === 'text') print(`${summary}.`);
}

const findingColumns = ['table', 'key', 'problem', 'warning'];

export function printDiff(terminal: Terminal, { from, to, differences }: ConfigDiff): void {
  const { format, print } = terminal;
  if (format === 'json') return terminal.printJson(differences);
  if (format === 'csv') return terminal.printCsv(csvRows(diffColumns, differences.flatMap(attributeRows)));
  print(`from ${from} to ${to}:`);
  printDifferences(terminal, differences);
  if (differences.length === 0) print('no difference.');
}

const diffColumns = ['table', 'key', 'change', 'attribute', 'before', 'after'];

const attributeRows = ({ table, key, change, attributes }: RowDifference): object[] =>
  attributes.map(({ name, before, after }) => ({ table, key, change, attribute: name, before, after }));

export function printConfigPlan(terminal: Terminal, plan: ConfigPlan): void {
  printDifferences(terminal, plan.differences);
  for (const { finding, written } of plan.problems)
    terminal.remark(`${problemWords(finding)}${written ? '' : ' (in the tables already)'}`);
}

export const problemWords = (finding: Finding): string => `problem: ${nameOf(finding)}: ${finding.problem}`;

/** @param version undefined: the command did not wait for it */
export function printPublished(
  { print }: Terminal,
  version: { version: number; publishedAt: number } | undefined,
): void {
  const said =
    version && `version ${version.version} is published (${isoTime(version.publishedAt * 1000)}); `;
  print(`${said ?? ''}live within 10 seconds.`);
}

const signs = { added: '+', removed: '-', changed: '~' };

function printDifferences({ print }: Terminal, differences: RowDifference[]): void {
  for (const difference of differences) {
    const { table, change, attributes } = difference;
    print(`${signs[change]} ${nameOf(difference)}`);
    if (change === 'removed') continue;
    for (const attribute of attributes)
      if (attribute.name !== keyAttributes[table]) print(`    ${attribute.name}: ${changeWords(attribute)}`);
  }
}

function changeWords({ before, after }: AttributeChange): string {
  const [old, next] = [before, after].map((value) => value !== undefined && shorten(JSON.stringify(value)));
  if (!old) return next || 'not shown: the row has a problem, and this may be a secret';
  return listWords(before, after) ?? `${old} -> ${next || '(gone)'}`;
}

/**
 * Lists only added and removed texts, because long lists of models differ in a few. Undefined: the values are
 * not lists of texts, or have the same texts.
 */
function listWords(before: unknown, after: unknown): string | undefined {
  if (!isTexts(before) || !isTexts(after)) return undefined;
  const words = [
    ...after.filter((text) => !before.includes(text)).map((text) => `+ ${text}`),
    ...before.filter((text) => !after.includes(text)).map((text) => `- ${text}`),
  ];
  return words.length > 0 ? words.join('  ') : undefined;
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

const shorten = (text: string): string =>
  text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}…` : text;

export function printVersions(terminal: Terminal, { served, versions, kept, edited }: ListedVersions): void {
  const { print, remark } = terminal;
  terminal.printList({
    columns: ['version', 'published_at', 'by', 'format', 'digest', 'rows'],
    rows: versions.map(({ version, publishedAt, by = [], format, digest, rows }) => ({
      version,
      published_at: publishedAt,
      by,
      format,
      digest,
      rows,
    })),
    table: () => [
      ['VERSION', 'PUBLISHED', 'CHANNELS', 'CHARGES', 'PLANS', 'SETTINGS', 'BY'],
      ...versions.map(({ version, publishedAt, by = [], rows: { channels, charges, plans, settings } }) => [
        String(version),
        isoTime(publishedAt * 1000),
        ...[channels, charges, plans, settings].map(String),
        by.join(' ') || '-',
      ]),
    ],
    empty: 'nothing was published yet: the relay serves no model',
  });
  if (served !== undefined) print(`version ${served} is served.`);
  if (kept > versions.length) remark(`${kept} versions are kept: see --limit`);
  if (edited)
    remark('The tables hold edits that are not published: within seconds they are, see `config diff`.');
}

export function printVersion(
  { format, print, printJson, printTable }: Terminal,
  { snapshot, settings }: ShownVersion,
): void {
  if (format === 'json') return printJson(snapshot);
  const { version, publishedAt, charges, plans, models } = snapshot;
  print(`version ${version}, published ${isoTime(publishedAt * 1000)}`);
  print(`models: ${models.join(' ') || 'none'}`);
  const tables = [
    channelTable(snapshot),
    chargeTable(charges),
    planTable(plans),
    [['SETTING', 'VALUE'], ...settings.map(({ name, value }) => [name, JSON.stringify(value)])],
  ];
  for (const table of tables) {
    print('');
    printTable(table);
  }
}

const planTable = (plans: Snapshot['plans']): string[][] => [
  ['PLAN', 'PRICE', 'ENTRIES'],
  ...plans.map(({ level, price, items }) => [
    String(level),
    String(price),
    items.map(({ id, value }) => `${id} ${value < 0 ? 'unlimited' : value}`).join(', '),
  ]),
];

const channelTable = ({ channels }: Snapshot): string[][] => [
  ['CHANNEL', 'TYPE', 'PRIORITY', 'WEIGHT', 'ENDPOINT', 'SECRET', 'MODELS'],
  ...channels.map(({ id, type, priority, weight, endpoint, secret, models }) => [
    id,
    type,
    String(priority),
    String(weight),
    endpoint,
    [secret ?? []].flat().join(' ') || '-',
    models.join(' '),
  ]),
];
