/** Prints views and plans of the configuration. */
import type { Command } from 'commander';
import { keyAttributes } from '../../../shared/config/rows/read-table.ts';
import type { Snapshot } from '../../../shared/config/snapshot.ts';
import { type ConfigPlan, awaitPublished } from '../../../shared/operate/config/write-rows.ts';
import type { CheckedRows, ConfigDiff } from '../../../shared/operate/config/check-rows.ts';
import {
  nameOf,
  type Finding,
  type AttributeChange,
  type RowDifference,
} from '../../../shared/operate/config/row-changes.ts';
import type { ListedVersions, ShownVersion } from '../../../shared/operate/config/versions.ts';
import { Failure } from '../../../shared/operate/plan.ts';
import { isoTime } from '../../../shared/wire/iso-time.ts';
import { csvRows, type Terminal } from './terminal.ts';
import { perMillion, type WrittenRates, priceDecimals } from '../../../shared/billing/price.ts';
import type { ImportPlan, NewCharge } from '../../../shared/operate/prices/import-charges.ts';
import type { ChargeList, ChargeExplanation } from '../../../shared/operate/prices/list-charges.ts';
import { formatDecimal, formatYuan } from '../../../shared/billing/amount.ts';
import { priceWords, productStep, shownProducts } from '../../../shared/operate/requests/find-request.ts';
import type { PublishedVersion, RowWrite } from '../../../shared/operate/operator-ports.ts';
import { carryOutWrites } from '../../../shared/operate/rows.ts';
import { type Run, type Writing, countProgress } from './command.ts';
import { parseNumber } from './option-values.ts';

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

function printConfigPlan(terminal: Terminal, plan: ConfigPlan): void {
  printDifferences(terminal, plan.differences);
  for (const { finding, written } of plan.problems)
    terminal.remark(`${problemWords(finding)}${written ? '' : ' (in the tables already)'}`);
}

export const problemWords = (finding: Finding): string => `problem: ${nameOf(finding)}: ${finding.problem}`;

/** @param version undefined: the command did not wait for it */
function printPublished(
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

// Prints billing rules and the plans that create them.

const modelsShown = 6;

/** In yuan per million tokens. Dates stand in it only if a rule has one. */
function chargeTable(charges: NewCharge[]): string[][] {
  const dated = charges.some(({ from }) => from !== undefined);
  const dateOf = (text: string): string[] => (dated ? [text] : []);
  return [
    ['ID', 'TYPE', ...dateOf('FROM'), 'INPUT/M', 'OUTPUT/M', 'MODELS'],
    ...charges.map((charge) => {
      const { id, type, from, models, output, tiers = [] } = charge;
      const more = models.length > modelsShown ? ` and ${models.length - modelsShown} more` : '';
      const outputs =
        type === 'times-billing'
          ? [`${output} per call`]
          : [perMillion(output), ...tiers.map((tier) => `above ${tier.above}: ${perMillion(tier.output)}`)];
      return [
        String(id),
        type,
        ...dateOf(from === undefined ? '-' : isoTime(from)),
        type === 'token-billing' ? inputPrices(charge) : '-',
        type === 'non-billing' ? '-' : outputs.join(', '),
        models.slice(0, modelsShown).join(' ') + more,
      ];
    }),
  ];
}

/** The price of input, with the prices of cached and written input that the rule has. */
function inputPrices({ tiers = [], ...base }: NewCharge): string {
  const higher = tiers.map((tier) => `, above ${tier.above}: ${rateWords(tier)}`);
  return rateWords(base) + higher.join('');
}

function rateWords({ input, cached_input, cache_write, cache_write_1h }: WrittenRates): string {
  const cache = Object.entries({ cached: cached_input, write: cache_write, 'write 1h': cache_write_1h })
    .filter(([, price]) => price !== undefined)
    .map(([name, price = 0]) => `${name} ${perMillion(price)}`);
  return cache.length > 0 ? `${perMillion(input)} (${cache.join(', ')})` : perMillion(input);
}

export function printCharges(terminal: Terminal, { charges, shadowed, problems }: ChargeList): void {
  terminal.printList({
    columns: chargeColumns,
    rows: charges.map(withTime),
    table: () => chargeTable(charges),
    empty: 'no rules: every model is free, unless the setting unpriced_models refuses it',
  });
  for (const { id, by, byId, models } of shadowed)
    terminal.remark(
      `${id}: ${byId ? 'a rule with a lower id' : `rule ${by}, with a later date,`} prices ${models.join(', ')}`,
    );
  problems.forEach(terminal.remark);
}

const chargeColumns =
  'id type from models input output cached_input cache_write cache_write_1h tiers max_output_tokens anonymous'.split(
    ' ',
  );

export function printImportPlan(terminal: Terminal, { charges, missing, suspicious }: ImportPlan): void {
  if (missing.length > 0) terminal.remark(`not in the list: ${missing.join(', ')}`);
  if (charges.length > 0) terminal.printTable(chargeTable(charges));
  if (suspicious !== undefined)
    terminal.warn([`more than a dollar per 1,000 tokens, is the list per token? ${suspicious} and others`]);
  if (charges.length === 0) terminal.print('nothing to write');
}

export const importFacts = ({ charges, missing }: ImportPlan) => ({ charges, missing });

// Prints what a call costs, line by line.

/** As in the table: a time is ISO 8601. */
const withTime = ({ from, ...charge }: ChargeList['charges'][number]) => ({
  ...charge,
  ...(from !== undefined && { from: isoTime(from) }),
});

/** The sum of a call, line by line. */
export function printExplanation(
  { format, print, printJson, printTable, remark }: Terminal,
  model: string,
  { atMs, rule, price, above, products, cost, text, problems }: ChargeExplanation,
): void {
  const shown = shownProducts(products).map((product) => productStep(product));
  problems.forEach(remark);
  if (format === 'json')
    return printJson({
      model,
      at: isoTime(atMs),
      rule: rule ? withTime(rule) : null,
      above,
      sum: products.map(([kind, tokens, rate]) => ({
        kind,
        tokens,
        price: formatDecimal(rate, priceDecimals),
      })),
      total: formatYuan(cost),
      price: text,
    });
  const since = rule?.from === undefined ? '' : `, in force since ${isoTime(rule.from)}`;
  print(`${model} at ${isoTime(atMs)}${since}`);
  printTable([
    ['  price', priceWords(price)],
    ...(above > 0 ? [['  tier', `for more than ${above} input tokens`]] : []),
    ...shown.map(([what, words]) => [`  ${what}`, words]),
    ['  total', `${formatYuan(cost)} yuan, rounded once, half up, to 9 decimals`],
    ['  ledger', text],
  ]);
}

// What every command does that writes rows of the configuration: shows the difference, writes, waits until it is published.

/** Seconds. */
export interface WaitOption {
  wait: number;
}

export const waiting = (command: Command): Command =>
  command.option('--wait <seconds>', 'how long to wait until it is published', parseNumber, 30);

export const configWriting = (
  { ports, terminal }: Run,
  plan: ConfigPlan,
  { wait }: WaitOption,
): Writing<{ written: RowWrite[]; version: PublishedVersion | undefined }> => ({
  plan,
  preview: (shown) => printConfigPlan(shown, plan),
  async carryOut() {
    const written = await carryOutWrites(ports, plan, countProgress(terminal, 'rows written'));
    return { written, version: await awaitPublished(ports, wait) };
  },
  print(shown, { written, version }) {
    shown.print(`${written.length} rows are written.`);
    printPublished(shown, version);
  },
  facts: (made) => ({
    differences: plan.differences,
    ...(made && { rows: made.written.length, version: made.version?.version ?? null }),
  }),
});
