/** Decides the order in which a call's candidates are tried. Reads health; must never write it. */
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { ChannelHealth } from '../ports/stores/channel-health.ts';
import type { Random } from '../ports/ids.ts';

/** A channel with one of its secrets. */
export interface Candidate {
  readonly id: string;
  readonly channel: ChannelRow;
  readonly secret: string | undefined;
  /** Its cooldown is over, but no call has succeeded since. The caller must claim the probe first. */
  readonly probe: boolean;
}

export interface OrderPorts {
  health: Pick<ChannelHealth, 'of'>;
  random: Random;
  nowMs: number;
  /** Whether a candidate ranks first, because the conversation's state comes from it. Absent: none does. */
  isFirst?: ((candidate: Candidate) => boolean) | undefined;
}

export interface Route {
  /** In the order in which to try them; each channel at most once. */
  candidates: Candidate[];
  /** When the first cooldown ends, in epoch milliseconds. Undefined: no cooldown runs. */
  soonestMs: number | undefined;
}

/** Contains the secret's reference, never its value. */
export const candidateId = (channel: ChannelRow, secret: string | undefined): string =>
  secret === undefined ? channel.id : `${channel.id}|${secret}`;

/**
 * Orders channels by priority, and at random by weight within a priority; the origin of state comes first. Omits a
 * channel when all its secrets are in cooldown. `channels`: those that serve the model.
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
      const first = ports.isFirst && usable.find(ports.isFirst);
      if (first) candidates.unshift(first);
      else if (pick) candidates.push(pick);
      cooldownEndsMs.push(...blockedUntilMs);
    }
  }
  return { candidates, soonestMs: cooldownEndsMs.length > 0 ? Math.min(...cooldownEndsMs) : undefined };
}

/** `usable`: candidates without a cooldown; if there are none, those that need a probe. */
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

/** Weighted random order without replacement. Channels of weight 0 come last. */
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
