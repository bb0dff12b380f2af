/** In which order the candidates of a call are tried. Reads health, never writes it. */
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { CandidateHealth, ChannelHealth } from '../ports/channel-health.ts';
import type { Random } from '../ports/ids.ts';

/** A channel with the secret that it would be called with. */
export interface Candidate {
  readonly id: string;
  readonly channel: ChannelRow;
  readonly secret: string | undefined;
  /** Its cooldown is over but no call has tried it since: the probe has to be claimed first. */
  readonly probe: boolean;
}

export interface Route {
  /** Each channel at most once, in the order in which they are to be tried. */
  candidates: Candidate[];
  /** When the first cooldown ends, in epoch milliseconds; undefined: there is none. */
  soonestMs: number | undefined;
}

/** Secrets are told apart by their references, which are no secrets. */
export const candidateId = (channel: ChannelRow, secret: string | undefined): string =>
  secret === undefined ? channel.id : `${channel.id}|${secret}`;

/**
 * By priority; within a priority at random, each channel first as often as its weight says. Channels all of whose secrets
 * are in cooldown are left out. `channels`: those that serve the model, by priority.
 */
export function orderCandidates(
  channels: readonly ChannelRow[],
  health: Pick<ChannelHealth, 'of'>,
  nowMs: number,
  random: Random,
): Route {
  const route: Route = { candidates: [], soonestMs: undefined };
  const priorities = [...new Set(channels.map((channel) => channel.priority))].toSorted((a, b) => b - a);
  for (const priority of priorities) {
    const siblings = channels.filter((channel) => channel.priority === priority);
    for (const channel of shuffleByWeight(siblings, random)) {
      const usable = usableCandidates(channel, health, nowMs, route);
      const pick = usable[Math.floor(random.next() * usable.length)];
      if (pick) route.candidates.push(pick);
    }
  }
  return route;
}

/** Those not in cooldown; where there are none, those that wait for a probe. */
function usableCandidates(
  channel: ChannelRow,
  health: Pick<ChannelHealth, 'of'>,
  nowMs: number,
  route: Route,
): Candidate[] {
  const secrets = typeof channel.secret === 'string' ? [channel.secret] : (channel.secret ?? [undefined]);
  const fresh: Candidate[] = [];
  const probes: Candidate[] = [];
  for (const secret of secrets) {
    const id = candidateId(channel, secret);
    const known = health.of(id);
    const blockedUntilMs = blockedUntil(known);
    if (blockedUntilMs > nowMs) route.soonestMs = Math.min(route.soonestMs ?? Infinity, blockedUntilMs);
    else if (known?.coolUntilMs === undefined)
      fresh.push(Object.freeze({ id, channel, secret, probe: false }));
    else probes.push(Object.freeze({ id, channel, secret, probe: true }));
  }
  return fresh.length > 0 ? fresh : probes;
}

const blockedUntil = (health: CandidateHealth | undefined): number =>
  Math.max(health?.coolUntilMs ?? 0, health?.probeUntilMs ?? 0);

/** Weighted draws without replacement. A weight of 0 comes after all others. */
function shuffleByWeight(channels: ChannelRow[], random: Random): ChannelRow[] {
  const left = [...channels];
  const order: ChannelRow[] = [];
  while (left.length > 0) {
    const total = left.reduce((sum, { weight }) => sum + weight, 0);
    let draw = random.next() * total;
    let pick = left.findIndex(({ weight }) => {
      draw -= weight;
      return draw < 0;
    });
    if (pick < 0) pick = Math.floor(random.next() * left.length);
    order.push(...left.splice(pick, 1));
  }
  return order;
}
