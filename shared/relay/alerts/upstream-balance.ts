/**
 * Reads the balance that an upstream reports for each secret of a channel, and alerts once when one falls below the channel's
 * `balance_below`. Must never show the upstream's text, which may repeat a secret, and never use its figures for billing.
 */
import { secretsOf, type ChannelRow } from '../../config/rows/channel-row.ts';
import type { BalanceReport, UpstreamBalance } from '../../upstreams/channel-type.ts';
import { hostOf } from '../../upstreams/endpoint-rules.ts';
import { findBalanceReport } from '../../upstreams/types/channel-attributes.ts';
import { channelTypes } from '../../upstreams/types/channel-types.ts';
import { parseJson } from '../../wire/json.ts';
import { exchangeText } from '../http/exchange-text.ts';
import type { AlertStore, WatchedChannels } from '../ports/alerts.ts';
import type { Clock, UpstreamTransport } from '../ports/host.ts';
import { workOnEach } from '../retry.ts';
import { updateMark, type NoticeInput } from './balance-watch.ts';

/** The names of the fields are public: programs read them. */
export interface FoundBalance {
  channel: string;
  /** The secret's reference. */
  secret: string;
  balance_below?: number | undefined;
  amounts?: UpstreamBalance;
  /** Why there are no amounts. */
  problem?: string;
}

export interface BalancePorts {
  transport: UpstreamTransport;
  clock: Clock;
  /** Rejects with an error whose message does not contain the secret. */
  readSecret(reference: string, host: string | undefined, channel: ChannelRow): Promise<string | undefined>;
}

interface UpstreamWatchPorts extends BalancePorts, NoticeInput {
  clock: Clock;
  marks: AlertStore;
  channels: WatchedChannels;
}

/** Asks only for enabled channels with a threshold: one to three small requests per secret. */
export const createUpstreamWatch = (ports: UpstreamWatchPorts) => async (): Promise<void> => {
  const rows = await ports.channels.rows();
  const watched = rows.filter(({ state, balance_below: below }) => state && below !== undefined);
  await workOnEach(watched, async (channel) => {
    const found = await findBalances(ports, [channel]);
    for (const each of found) await settleMark(ports, each);
    await ports.channels.mark(channel.id, {
      at: ports.clock.now(),
      low: found.some(isBalanceLow),
      text: found.map((each) => `${formatBalance(each)} (${each.secret})`).join(', '),
    });
  });
};

/** An unknown balance changes no mark. If another pass wrote the mark in between, it also wrote the notice. */
async function settleMark(ports: UpstreamWatchPorts, found: FoundBalance): Promise<void> {
  const { channel, secret, balance_below: below = 0, amounts } = found;
  if (!amounts) return;
  const data = { channel, secret, balance: formatBalance(found), balance_below: below };
  const alert = isBalanceLow(found) ? { type: 'upstream.balance_low' as const, data } : undefined;
  await updateMark(ports, `upstream_balance#${channel}#${secret}`, async () => alert);
}

/** An account in yuan often has a dollar balance of 0, too, so the balance is low only if all units are below the threshold. */
export const isBalanceLow = ({ amounts = [], balance_below: below = -Infinity }: FoundBalance): boolean =>
  amounts.length > 0 && amounts.every(({ amount }) => Number(amount) < below);

/** `110.00 CNY, 0.00 USD` */
export const formatBalance = ({ amounts, problem = '' }: FoundBalance): string =>
  amounts ? amounts.map(({ unit, amount }) => `${amount} ${unit}`).join(', ') || 'no limit' : problem;

/** Returns balances in the order of channels and secrets. A failure of an upstream or a secret store becomes a `problem`. */
export const findBalances = (ports: BalancePorts, channels: ChannelRow[]): Promise<FoundBalance[]> =>
  Promise.all(
    channels.flatMap((channel) =>
      secretsOf(channel).map(async (secret) => {
        const { id, balance_below: below } = channel;
        return Object.assign(
          { channel: id, secret, balance_below: below },
          await readBalance(ports, channel, secret),
        );
      }),
    ),
  );

type BalanceReading = Pick<FoundBalance, 'amounts' | 'problem'>;

async function readBalance(
  ports: BalancePorts,
  channel: ChannelRow,
  reference: string,
): Promise<BalanceReading> {
  const report = findBalanceReport(channel);
  if (!report) return { problem: 'the upstream reports no balance in a known form' };
  try {
    const secret = (await ports.readSecret(reference, hostOf(channel.endpoint), channel)) ?? '';
    return await askUpstream(ports, report, channelTypes[channel.type].credentials(secret, channel));
  } catch (error) {
    return { problem: error instanceof Error && error.message ? error.message : 'the secret can’t be read' };
  }
}

/** A reply with a balance has a few hundred characters. */
const bounds = { timeoutMs: 10_000, charactersMax: 64 * 1024 };

async function askUpstream(
  ports: BalancePorts,
  report: BalanceReport,
  headers: Record<string, string>,
): Promise<BalanceReading> {
  const request = { method: 'GET', headers, body: '', connectTimeoutMs: bounds.timeoutMs } as const;
  const asked = report.addresses.map((url) => exchangeText(ports, { ...request, url }, bounds));
  const replies = await Promise.all(asked);
  const failed = replies.find((reply) => 'problem' in reply || reply.status !== 200);
  const bodies = replies.map((reply) => ('body' in reply ? parseJson(reply.body) : undefined));
  const amounts = failed ? undefined : report.read(bodies);
  if (amounts && isReadable(amounts)) return { amounts };
  if (report.otherwise) return askUpstream(ports, report.otherwise, headers);
  if (failed && 'problem' in failed) return failed;
  return { problem: `no balance in the answer (status ${failed?.status ?? 200})` };
}

/** An upstream may send any text instead of a figure. */
const isReadable = (amounts: UpstreamBalance): boolean =>
  amounts.length <= 8 &&
  amounts.every(({ unit, amount }) => /^[a-z]{1,12}$/i.test(unit) && /^-?\d{1,15}(\.\d{1,9})?$/.test(amount));
