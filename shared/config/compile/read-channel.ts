import * as z from 'zod/mini';
import { ChannelRow } from '../rows/channel-row.ts';
import { endpointOf, typeProblems } from '../../upstreams/types/channel-attributes.ts';
import { normaliseEndpoint } from '../../upstreams/endpoint-rules.ts';
import { attributeOf, readRow, usedRow } from '../rows/read-row.ts';
import type { RowProblem, RowReading } from '../rows/read-row.ts';
import type { TableReader } from './read-table.ts';
import { referenceProblem } from '../rows/secret-reference.ts';

/**
 * Reads one row of `channels`: its schema, then the rules beyond it (type, address, secret references).
 * @param rules `local`: loopback addresses and `env:` secrets are allowed
 */
export function readChannel(raw: unknown, rules: { local: boolean }): RowReading<ChannelRow> {
  const reading = readRow(ChannelRow, raw);
  if ('problem' in reading) return validateSwitch(raw, reading);
  const row = { ...reading.row, endpoint: endpointOf(reading.row) ?? '' };
  const problems = [
    ...typeProblems(reading.row, rules),
    ...secretsOf(row).map((reference) => {
      const problem = referenceProblem(reference, rules);
      return problem && `secret: ${problem}`;
    }),
    row.secret?.length === 0 ? 'secret: found an empty list, wanted a reference or no attribute' : undefined,
  ].filter((problem) => problem !== undefined);
  if (problems.length > 0) return validateSwitch(raw, { problem: [...new Set(problems)].join('; ') });
  return usedRow({ ...row, endpoint: normaliseEndpoint(row.endpoint) }, channelWarnings(row));
}

/** A bad row switches its channel off if `state` is false or cannot be read. */
function validateSwitch(raw: unknown, { problem }: RowProblem): RowProblem {
  const state = z.safeParse(ChannelRow.shape.state, attributeOf(raw, 'state'));
  if (!state.success)
    return { problem: `${problem}; until state can be read, the channel is off`, off: true };
  return state.data ? { problem } : { problem, off: true };
}

export const channelReader = (rules: { local: boolean }): TableReader<ChannelRow> => ({
  table: 'channels',
  read: (raw) => readChannel(raw, rules),
  standIn: ({ problem, lastGood }) =>
    problem.off && lastGood !== undefined ? { raw: { ...(lastGood as object), state: false } } : undefined,
});

/** The references of a row as a list, in the order written. */
export const secretsOf = ({ secret }: ChannelRow): string[] => [secret ?? []].flat();

const channelWarnings = (row: ChannelRow): string[] =>
  [
    row.models.length === 0 ? 'models: empty, so this channel serves nothing' : undefined,
    new URL(row.endpoint).pathname === '/'
      ? 'endpoint: has no path; most upstreams want /v1 at the end'
      : undefined,
    ...Object.keys(row.mapper)
      .filter((name) => !row.models.includes(name))
      .map((name) => `mapper: maps ${name}, which is not in models`),
    ...row.models
      .filter((name) => name.startsWith('web-') || name.endsWith('-official'))
      .map(
        (name) => `models: ${name} is out of reach, since web- and -official are cut from what clients ask`,
      ),
  ].filter((warning) => warning !== undefined);
