import { DeclaredNames, UpstreamToolCalls } from '../../shared/upstreams/dialects/chat/tool-calls.ts';
import { CallArguments } from '../../shared/upstreams/call-arguments.ts';
import { Kept, type ToolCallDelta } from '../../shared/wire/chat-response.ts';

/** Feeds pieces of tool calls, cut as Chat Completions upstreams cut them, to the machine that reads them. */

export interface ToolCallSetting {
  declared?: string[];
  wrapped?: string[];
  whole?: boolean;
}

export function machineWith({ declared = [], wrapped = [] }: ToolCallSetting = {}): UpstreamToolCalls {
  let shown = 0;
  const writer = {
    assignCallId: (id?: string) => id ?? `call_${shown++}`,
    memory: new Kept(Infinity, Error),
  };
  return new UpstreamToolCalls(writer, new DeclaredNames(declared), new Set(wrapped));
}

export function deltasOf(deltas: object[][], setting: ToolCallSetting = {}): ToolCallDelta[] {
  const machine = machineWith(setting);
  const written = new CallArguments(() => {});
  return [
    ...deltas.flatMap((pieces) => written.push(machine.push(pieces))),
    ...written.push(machine.end(setting.whole ?? true)),
    ...written.end(() => 'call_another'),
  ];
}

/** The complete calls that some deltas add up to. */
export function wholeCalls(deltas: object[][], setting: ToolCallSetting = {}): [string, string][] {
  const whole: [string, string][] = [];
  for (const { index, function: called, custom } of deltasOf(deltas, setting)) {
    const known = whole[index];
    const text = called?.arguments ?? custom?.input ?? '';
    if (known) known[1] += text;
    else whole[index] = [called?.name ?? custom?.name ?? '', text];
  }
  return whole;
}
export const callPiece = (name: string | undefined, text: string | undefined, more: object = {}): object => ({
  ...more,
  function: { ...(name !== undefined && { name }), ...(text !== undefined && { arguments: text }) },
});
