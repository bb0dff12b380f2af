/** In which order the candidates of a call are tried. Reads health, never writes it. */
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { ChannelHealth } from '../ports/channel-health.ts';
import type { Random } from '../ports/ids.ts';

/** A channel with the secret that it would be called with. */
export interface Candidate {
  readonly id: string;
  readonly channel: ChannelRow;
  readonly secret: string | undefined;
  /** Its cooldown is over but no call has tried it since: the probe has to be claimed first. */
  readonly probe: boolean;
}

export interface OrderPorts {
  health: Pick<ChannelHealth, 'of'>;
  random: Random;
  nowMs: number;
}

export interface Route {
  /** Each channel at most once, in the order in which they are to be tried. */
  candidates: Candidate[];
  /** When the first cooldown ends, in epoch milliseconds; undefined: there is none. */
  soonestMs: number | undefined;
}

/** Secrets are named by their references, which are no secrets. */
export const candidateId = (channel: ChannelRow, secret: string | undefined): string =>
  secret === undefined ? channel.id : `${channel.id}|${secret}`;

/**
 * By priority; within a priority at random, each channel first as often as its weight says. Channels all of whose secrets
 * are in cooldown are left out. `channels`: those that serve the model, by priority.
 */
export function orderCandidates(channels: readonly ChannelRow[], ports: OrderPorts): Route {
  const candidates: Candidate[] = [];
  const cooldownEndsMs: number[] = [];
  const priorities = [...new Set(channels.map((channel) => channel.priority))].toSorted((a, b) => b - a);
  for (const priority of priorities) {
    const siblings = channels.filter((channel) => channel.priority === priority);
    for (const channel of shuffleByWeight(siblings, ports.random)) {
      const { usable, blockedUntilMs } = candidatesOf(channel, ports);
      const pick = usable[Math.floor(ports.random.next() * usable.length)];
      if (pick) candidates.push(pick);
      cooldownEndsMs.push(...blockedUntilMs);
    }
  }
  return { candidates, soonestMs: cooldownEndsMs.length > 0 ? Math.min(...cooldownEndsMs) : undefined };
}

/** `usable`: those not in cooldown; where there are none, those that wait for a probe. */
function candidatesOf(
  channel: ChannelRow,
  { health, nowMs }: OrderPorts,
): { usable: Candidate[]; blockedUntilMs: number[] } {
  const secrets = typeof channel.secret === 'string' ? [channel.secret] : (channel.secret ?? [undefined]);
  const known = secrets.map((secret) => {
    const id = candidateId(channel, secret);
    const { coolUntilMs, probeUntilMs = 0 } = health.of(id) ?? {};
    const probe = coolUntilMs !== undefined;
    const untilMs = Math.max(coolUntilMs ?? 0, probeUntilMs);
    return { untilMs, candidate: Object.freeze({ id, channel, secret, probe }) };
  });
  const free = known.filter(({ untilMs }) => untilMs <= nowMs).map(({ candidate }) => candidate);
  const fresh = free.filter(({ probe }) => !probe);
  return {
    usable: fresh.length > 0 ? fresh : free,
    blockedUntilMs: known.map(({ untilMs }) => untilMs).filter((untilMs) => untilMs > nowMs),
  };
}

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
