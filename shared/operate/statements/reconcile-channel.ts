/** View: what the relay reckons that a channel's vendor charges (`bought`), beside the vendor's invoice, by upstream model. */
import { formatDecimal, parseDecimal, parseYuan, type NanoYuan } from '../../billing/amount.ts';
import { addFigures, noFigures, type DailyFigures } from '../../billing/daily/daily-figures.ts';
import { channelId } from '../../billing/daily/daily-keys.ts';
import { rowsIn } from '../ledger/sum-rows.ts';
import { deniedExitCode, Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { invoiceDecimals } from './invoice-amounts.ts';
import type { InvoiceText } from './invoice-columns.ts';
import { readInvoice, type Invoice, type InvoiceOptions } from './vendor-invoice.ts';

export interface ReconcileInput extends InvoiceOptions {
  channel: string;
  /** `2026-10`, in UTC. */
  month: string;
  text: InvoiceText;
  /** Yuan for one unit of the invoice's currency, a decimal as text. */
  rate: string;
}

export interface ReconciledModel {
  model: string;
  /** Undefined: the relay sent it no call. */
  own: DailyFigures | undefined;
  bought: NanoYuan;
  /** Undefined: the invoice has no such line. */
  invoiced: NanoYuan | undefined;
  /** Invoiced less bought. */
  difference: NanoYuan;
  /** Of what was bought, such as `4.2`. Undefined: nothing was. */
  percent: string | undefined;
}

export interface Reconciliation {
  channel: string;
  month: string;
  /** The largest difference first. */
  models: ReconciledModel[];
  all: ReconciledModel;
  invoice: Pick<Invoice, 'columns' | 'decimal' | 'totals'>;
  warnings: string[];
}

export async function reconcileChannel(
  { ledger, tables }: Pick<OperatorPorts, 'ledger' | 'tables'>,
  input: ReconcileInput,
): Promise<Reconciliation> {
  const { channel, month } = input;
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(month))
    throw usageFailure(`--month ${month}: wanted a month such as 2026-10`);
  const { lines, problems: unread, ...invoice } = readInvoice(input.text, input);
  const factor = parseDecimal(input.rate, rateDecimals, true);
  if (factor === undefined || factor <= 0n)
    throw usageFailure(`--rate ${input.rate}: wanted yuan, such as 7.2`);
  const { rows, problems } = await rowsIn(
    ledger.daily(channelId(channel), { from: `${month}-01`, to: `${month}-31` }),
  );
  const uncalled = rows.length === 0 ? [await uncalledWarning(tables, input)] : [];
  const own = new Map<string, DailyFigures>();
  // `day#2026-10-07#<upstream model>`
  for (const { key, figures } of rows) {
    const model = key.period.slice(15);
    own.set(model, addFigures(own.get(model) ?? noFigures, figures));
  }
  const names = new Map([...own.keys()].map((model) => [model.toLowerCase(), model]));
  const invoiced = new Map<string, NanoYuan>();
  for (const { model, amount } of lines) {
    const name = names.get(model.toLowerCase()) ?? model;
    invoiced.set(name, (invoiced.get(name) ?? 0n) + inYuan(amount, factor));
  }
  const models = [...new Set([...own.keys(), ...invoiced.keys()])].map((model) =>
    compared(model, own.get(model), invoiced.get(model)),
  );
  const sum = [...own.values()].reduce(addFigures, noFigures);
  const total = [...invoiced.values()].reduce((all, each) => all + each, 0n);
  return {
    channel,
    month,
    models: models.toSorted((a, b) => (sizeOf(a) > sizeOf(b) ? -1 : 1)),
    all: compared('all', sum, total),
    invoice,
    warnings: [...unread, ...problems, ...uncalled, ...costWarnings(sum)],
  };
}

const rateDecimals = 9;

/** Rounded half away from zero to nano-yuan. */
function inYuan(amount: bigint, factor: bigint): NanoYuan {
  const scaled = amount * factor;
  const text = formatDecimal(scaled < 0n ? -scaled : scaled, invoiceDecimals + rateDecimals);
  const yuan = parseYuan(text) ?? parseDecimal(text, 9) ?? 0n;
  return scaled < 0n ? -yuan : yuan;
}

function compared(
  model: string,
  own: DailyFigures | undefined,
  invoiced: NanoYuan | undefined,
): ReconciledModel {
  const bought = own?.amounts.bought ?? 0n;
  const difference = (invoiced ?? 0n) - bought;
  const tenths = bought === 0n ? undefined : Number((difference * 1000n) / bought) / 10;
  return { model, own, bought, invoiced, difference, percent: tenths?.toFixed(1) };
}

const sizeOf = ({ difference }: ReconciledModel): bigint => (difference < 0n ? -difference : difference);

/** Throws a Failure if there is no such channel. A channel that was deleted after it was called has no row. */
async function uncalledWarning(
  tables: OperatorPorts['tables'],
  { channel, month }: ReconcileInput,
): Promise<string> {
  const said = `channel ${channel} was not called in ${month}`;
  try {
    const channels = await tables.scan('channels');
    if (channels.some(({ id }) => id === channel)) return said;
  } catch (error) {
    // Who repairs may read the sums and no configuration.
    if (error instanceof Failure && error.exitCode === deniedExitCode)
      return `${said}: see \`channel list\` for its id`;
    throw error;
  }
  throw usageFailure(
    `there is no channel ${channel}, and none of that name was called in ${month}: see \`channel list\``,
  );
}

function costWarnings({ counts }: DailyFigures): string[] {
  const [calls, known] = [counts.calls ?? 0, counts.bought_calls ?? 0];
  if (known === calls) return [];
  return [
    `what ${calls - known} of ${calls} calls cost is unknown: give the channel's row \`cost\`; calls that failed cost nothing as a rule`,
  ];
}
