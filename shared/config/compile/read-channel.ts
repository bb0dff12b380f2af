import * as z from 'zod/mini';
import { ChannelRow } from '../rows/channel-row.ts';
import { endpointOf, typeProblems } from '../../upstreams/types/channel-attributes.ts';
import { normaliseEndpoint, type EndpointRules } from '../../upstreams/endpoint-rules.ts';
import { readCapabilities } from '../rows/capabilities.ts';
import { channelWarnings } from './channel-warnings.ts';
import { attributeOf, readRow, usedRow, type RowProblem, type RowReading } from '../rows/read-row.ts';
import { lastGoodIsUsed, type TableReader } from './read-table.ts';
import { referenceProblem, type ReferenceRules } from '../rows/secret-reference.ts';

/**
 * Reads one row of `channels`: its schema, then the rules beyond it (type, address, secret references).
 * @param rules `local`: loopback addresses and `env:` secrets are allowed
 */
export function readChannel(raw: unknown, rules: EndpointRules & ReferenceRules): RowReading<ChannelRow> {
  const reading = readRow(ChannelRow, raw);
  if ('problem' in reading) return validateSwitch(raw, reading);
  const { can, warnings } = readCapabilities(raw);
  const row = { ...reading.row, endpoint: endpointOf(reading.row) ?? '', ...(can && { can }) };
  const problems = [
    ...typeProblems(reading.row, rules),
    ...strangersOf(row).map((name) => `dialect: found ${name}, wanted names that are in models`),
    ...secretsOf(row).map((reference) => {
      const problem = referenceProblem(reference, rules);
      return problem && `secret: ${problem}`;
    }),
    row.secret?.length === 0 ? 'secret: found an empty list, wanted a reference or no attribute' : undefined,
  ].filter((problem) => problem !== undefined);
  if (problems.length > 0) return validateSwitch(raw, { problem: [...new Set(problems)].join('; ') });
  const said = [...channelWarnings(row), ...warnings];
  return usedRow({ ...row, endpoint: normaliseEndpoint(row.endpoint) }, said);
}

/** The names in a map of dialects that the row does not serve. */
const strangersOf = ({ dialect, models }: ChannelRow): string[] =>
  typeof dialect === 'object' ? Object.keys(dialect).filter((name) => !models.includes(name)) : [];

/** A bad row switches its channel off if `state` is false or cannot be read. */
function validateSwitch(raw: unknown, { problem }: RowProblem): RowProblem {
  const state = z.safeParse(ChannelRow.shape.state, attributeOf(raw, 'state'));
  if (!state.success)
    return { problem: `${problem}; until state can be read, the channel is off`, off: true };
  return state.data ? { problem } : { problem, off: true };
}

export const channelReader = (rules: EndpointRules & ReferenceRules): TableReader<ChannelRow> => ({
  table: 'channels',
  read: (raw) => readChannel(raw, rules),
  /** Rows of a snapshot have no marks, so the mark of the bad row stays. */
  standIn({ problem, raw, lastGood }) {
    if (lastGood === undefined) return undefined;
    const marked = { ...(lastGood as object), _can: attributeOf(raw, '_can') };
    return problem.off ? { raw: { ...marked, state: false } } : { raw: marked, said: lastGoodIsUsed };
  },
});

/** The references of a row as a list, in the order written. */
export const secretsOf = ({ secret }: ChannelRow): string[] => [secret ?? []].flat();
