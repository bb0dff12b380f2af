/** Counts the calls of a probe. Never sends more than it said beforehand. */
import { probeCall, type ProbedChannel, type ProbeOutcome, type ProbePorts } from './probe-call.ts';
import type { ProbeRequest } from './probe-call.ts';

export const callsMax = 12;

export class ProbeCalls {
  readonly #ports: ProbePorts;
  readonly #probed: ProbedChannel;
  #sent = 0;

  constructor(ports: ProbePorts, probed: ProbedChannel) {
    this.#ports = ports;
    this.#probed = probed;
  }

  get sent(): number {
    return this.#sent;
  }

  /** Undefined: no call is left. Throws a Failure, see probeCall. */
  async ask(asked: ProbeRequest): Promise<ProbeOutcome | undefined> {
    if (this.#sent >= callsMax) return undefined;
    return await probeCall(this.#ports, this.#probed, { asked, onSend: () => (this.#sent += 1) });
  }
}
