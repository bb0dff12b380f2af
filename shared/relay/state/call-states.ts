/** Puts the states of earlier turns to a call, while its money is reserved. */
import type { EndpointRequest } from '../../endpoints/endpoint.ts';
import { quirksOf } from '../../upstreams/types/channel-quirks.ts';
import type { Candidate } from '../call/candidate.ts';
import type { ChatCall } from '../call/chat-call.ts';
import type { LookingCall, StatePorts } from './state-lookup.ts';
import { bareTurns, openSeals, type TurnStates } from './returned-turns.ts';

const isText = ({ channel, model }: Candidate): boolean =>
  quirksOf(channel, model).wantsBack === 'reasoning_content';

export class CallStates {
  readonly #ports: StatePorts;
  readonly #call: LookingCall;
  readonly #read: EndpointRequest;
  readonly #turns: TurnStates;

  /** Throws InvalidRequest for a damaged seal. */
  constructor(ports: StatePorts, call: LookingCall, read: EndpointRequest) {
    this.#ports = ports;
    this.#call = call;
    this.#read = read;
    const models = call.alias?.models.map(({ model }) => model) ?? [call.model.base];
    this.#turns = openSeals(ports.sealer, { account: call.key.account, models }, read);
    if (read.foreignLeftOut) this.#turns.dropped = true;
  }

  /**
   * What a reserve returns, and the states of the call, read from the store meanwhile. A reserve that is refused ends
   * the wait.
   */
  async beside<T>(
    reserve: () => Promise<T>,
  ): Promise<{ reserved: T } & Pick<ChatCall, 'states' | 'stateDropped'>> {
    const bare = bareTurns(this.#read, () => this.#call.candidates.every(isText));
    if (bare.length === 0) return { reserved: await reserve(), ...this.#found() };
    // Loaded at the first turn that came back without its state, before anything is reserved.
    const { addKept, lookUp } = await import('./state-lookup.ts');
    const refused = new AbortController();
    const looking = lookUp(this.#ports, this.#call, { turns: bare, signal: refused.signal });
    let reserved: T;
    try {
      reserved = await reserve();
    } catch (error) {
      refused.abort();
      throw error;
    }
    addKept(this.#turns, bare, await looking);
    return { reserved, ...this.#found() };
  }

  #found(): Pick<ChatCall, 'states' | 'stateDropped'> {
    const { states, dropped } = this.#turns;
    return { states, stateDropped: dropped };
  }
}
