/** The tables of a report on the terminal. */
import type { NearEmptyAccount } from '../../../../shared/operate/report/accounts-near-empty.ts';
import { marginOf } from '../../../../shared/operate/report/margin-of.ts';
import type { ServedGroup } from '../../../../shared/operate/report/group-served.ts';
import type { ReportedChannel } from '../../../../shared/operate/report/report-view.ts';
import { grouped, lastsFor, percent, seconds, yuanOrNone, yuanText } from '../../report/report-words.ts';

export const modelTable = (models: readonly ServedGroup[]): string[][] => [
  ['MODEL', 'CALLS', 'FAILED', 'CHARGED', 'MARGIN'],
  ...models.map(({ name, figures }) => [
    name,
    grouped(figures.counts.calls ?? 0),
    percent(figures.counts.failures ?? 0, figures.counts.calls ?? 0),
    yuanText(figures.amounts.charged ?? 0n),
    yuanOrNone(marginOf(figures).earned),
  ]),
];

export const channelTable = (channels: readonly ReportedChannel[]): string[][] => [
  ['CHANNEL', 'CALLS', 'FAILED', 'MARGIN', 'FIRST CONTENT P50', 'P95'],
  ...channels.map(({ name, figures, medianMs, slowMs }) => [
    name,
    grouped(figures.counts.calls ?? 0),
    percent(figures.counts.failures ?? 0, figures.counts.calls ?? 0),
    yuanOrNone(marginOf(figures).earned),
    seconds(medianMs),
    seconds(slowMs),
  ]),
];

export const nearEmptyTable = (accounts: readonly NearEmptyAccount[]): string[][] => [
  ['NEAR EMPTY', 'BALANCE', 'A DAY', 'LASTS'],
  ...accounts.map(({ account, available, perDay, daysLeft }) => [
    account,
    yuanText(available),
    yuanText(perDay),
    lastsFor(daysLeft),
  ]),
];
