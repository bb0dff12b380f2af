/** Finds the grant that a command without an id repeats: its reply was lost, or it was stopped after its write. Reads one page. */
import { parseYuan, type NanoYuan } from '../../billing/amount.ts';
import { isoTime } from '../../wire/iso-time.ts';
import type { OperatorPorts } from '../operator-ports.ts';

/** For so long a second command with the same amount is taken for a repeat of the first. */
export const repeatMs = 10 * 60_000;
const looked = 20;

/** Generated ids sort by time. */
export const generatedGrantId = ({ clock, random }: Pick<OperatorPorts, 'clock' | 'random'>): string =>
  `${isoTime(clock.now()).replaceAll(/[-:]/g, '')}-${random.hex(4)}`;

/** When the id was generated, in epoch milliseconds; undefined: somebody chose it. */
function generatedMs(grantId: string): number | undefined {
  const [, date = '', time = ''] = /^(\d{8})T(\d{6})Z-[0-9a-f]{8}$/.exec(grantId) ?? [];
  const iso = `${date.replace(/(....)(..)/, '$1-$2-')}T${time.replace(/(..)(..)/, '$1:$2:')}Z`;
  return date === '' ? undefined : Date.parse(iso);
}

/** Why a grant with a generated id is not made. Undefined: nothing like it was granted in the last ten minutes. */
export async function repeatedGrant(
  { pages, clock }: Pick<OperatorPorts, 'pages' | 'clock'>,
  account: string,
  amount: NanoYuan,
): Promise<string | undefined> {
  const { grants } = await pages.grants(account, looked);
  const again = grants.find(
    ({ grantId, amount: written }) =>
      parseYuan(written) === amount && (generatedMs(grantId) ?? 0) > clock.now() - repeatMs,
  );
  return again
    ? `${again.amount} yuan were granted to ${account} minutes ago, as ${again.grantId}: if this is the same grant, it is made; if it is another, name it with --id`
    : undefined;
}
