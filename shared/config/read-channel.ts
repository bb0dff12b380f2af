import * as z from 'zod/mini';
import { ChannelRow } from './channel-row.ts';
import { endpointProblem, normaliseEndpoint } from './endpoint.ts';
import { attributeOf, readRow } from './read-row.ts';
import type { RowProblem, RowReading } from './read-row.ts';
import { referenceProblem } from './secret-reference.ts';

/**
 * Reads one row of `channels`: its shape, then what a shape cannot say (address, secret references).
 * @param rules `local`: loopback addresses and `env:` secrets are allowed
 */
export function readChannel(raw: unknown, rules: { local: boolean }): RowReading<ChannelRow> {
  const reading = readRow(ChannelRow, raw);
  if ('problem' in reading) return isStateReadable(raw) ? reading : switchedOff(reading);
  const { row } = reading;
  const problems = [
    attributed('endpoint', endpointProblem(row.endpoint, rules)),
    ...secretsOf(row).map((reference) => attributed('secret', referenceProblem(reference, rules))),
    row.secret?.length === 0 ? 'secret: found an empty list, wanted a reference or no attribute' : undefined,
  ].filter((problem) => problem !== undefined);
  if (problems.length > 0) return { problem: [...new Set(problems)].join('; ') };
  const warning = channelWarning(row);
  const served = { ...row, endpoint: normaliseEndpoint(row.endpoint) };
  return warning ? { row: served, warning } : { row: served };
}

const isStateReadable = (raw: unknown): boolean =>
  z.safeParse(ChannelRow.shape.state, attributeOf(raw, 'state')).success;

const switchedOff = ({ problem }: RowProblem): RowProblem => ({
  problem: `${problem}; until state can be read, the channel is off`,
  off: true,
});

/** The references of a row as a list, in the order written. */
export function secretsOf(row: ChannelRow): string[] {
  if (row.secret === undefined) return [];
  return typeof row.secret === 'string' ? [row.secret] : row.secret;
}

const attributed = (attribute: string, problem: string | undefined): string | undefined =>
  problem && `${attribute}: ${problem}`;

function channelWarning(row: ChannelRow): string | undefined {
  const warnings = [
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
  return warnings.length > 0 ? warnings.join('; ') : undefined;
}
