/**
 * Asks a channel's upstream what it can, by a dozen small calls at most, and writes that as `_can` on the row. The
 * upstream charges for the calls. Writes nothing unless the upstream answers to the end.
 */
import { readChannel } from '../../../config/compile/read-channel.ts';
import type { Capabilities } from '../../../config/rows/capabilities.ts';
import { dialectNames } from '../../../upstreams/dialects/dialects.ts';
import { effortScale } from '../../../upstreams/quirks.ts';
import { dialectOf, upstreamModel } from '../../../upstreams/types/channel-quirks.ts';
import { channelTypes, type OwnAttributeName } from '../../../upstreams/types/channel-types.ts';
import type { ChannelType } from '../../../upstreams/channel-type.ts';
import { Failure } from '../../operator-failure.ts';
import type { OperatorPorts } from '../../operator-ports.ts';
import type { Plan } from '../../plan.ts';
import { carryOutWrites } from '../../row-writes.ts';
import type { RawRow, RowWrite } from '../../row-tables.ts';
import { channelSecret, findChannel, refuseRoleSigned, servedModel } from '../find-channel.ts';
import { findCapabilities } from './find-capabilities.ts';
import { findDialects } from './find-dialects.ts';
import type { ProbedChannel } from './probe-call.ts';
import { callsMax, ProbeCalls } from './probe-calls.ts';
import { expectedCost } from './probe-cost.ts';
import { parallelTools, toolsQuestion } from './probe-questions.ts';

export interface ProbeInput {
  id: string;
  /** Public name; absent: the channel's first model. */
  model?: string;
  /** See `channelSecret`. */
  secretEnv?: string;
}

export interface ProbePlan extends Plan<{ endpoint: string }> {
  /** Holds the secret, so it must not be shown. */
  probed: ProbedChannel;
  /** The row as read. */
  raw: RawRow;
}

export interface ProbeResult {
  /** As written. An absent field could not be decided. */
  can: Capabilities;
  /** Calls that were sent. */
  sent: number;
  /** Efforts that no call was left for. */
  unasked: string[];
  /** The relay's warnings about the row as it is now. */
  warnings: string[];
}

/** Attributes on which the findings depend. */
const dependedOn = ['type', 'endpoint', 'dialect', 'models', 'mapper', 'params'];

export async function planProbe(
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'secrets' | 'tables' | 'target'>,
  { id, model: wanted, secretEnv }: ProbeInput,
): Promise<ProbePlan> {
  const { raw, channel } = await findChannel(ports, id);
  const model = servedModel(channel, wanted);
  refuseRoleSigned(channel);
  const secret = await channelSecret(ports, channel, secretEnv);
  const { endpoint } = channel;
  return {
    changes: [{ endpoint }],
    effect: [
      `at most ${callsMax} calls to ${endpoint}, model ${upstreamModel(channel, model)}`,
      ...(await expectedCost(ports, model)),
    ],
    questions: [`Send them, and write what they show as _can on the channel ${id}?`],
    probed: { channel, model, secret },
    raw,
  };
}

/** Throws a Failure, and writes nothing, if the upstream does not answer, or if the row was changed meanwhile. */
export async function carryOutProbe(
  ports: Pick<OperatorPorts, 'clock' | 'tables' | 'target' | 'upstreams'>,
  { probed, raw }: Pick<ProbePlan, 'probed' | 'raw'>,
): Promise<ProbeResult> {
  const { channel, model } = probed;
  const own = dialectOf(channel, model);
  const calls = new ProbeCalls(ports, { ...probed, channel: asUpstreamsSee(channel) });
  const wanted = [own, ...dialectNames.filter((name) => name !== own)];
  const { dialects, toolsAnswer, answer } = await findDialects(calls, wanted);
  const [first = own] = dialects;
  const tools = toolsAnswer ? toolsQuestion.decide(toolsAnswer) : false;
  const parallel = toolsAnswer && parallelTools(toolsAnswer);
  const found = await findCapabilities(calls, first);
  const can: Capabilities = {
    model,
    ...(tools !== undefined && { tools }),
    ...(parallel !== undefined && { parallel_tools: parallel }),
    ...found.can,
    ...(asksForUsage(channel) && { usage_streaming: answer.hasUsage }),
    dialects: dialectNames.filter((name) => dialects.includes(name)),
  };
  const write: RowWrite = {
    kind: 'update',
    table: 'channels',
    key: { id: raw['id'] },
    attributes: { _can: can },
    unchanged: Object.fromEntries(dependedOn.map((name) => [name, raw[name]])),
    conflict: new Failure('nothing was written: somebody changed the row meanwhile; repeat the command'),
  };
  await carryOutWrites(ports, { changes: [write], effect: [], questions: [] });
  const reading = readChannel({ ...raw, _can: can }, ports.target);
  const warnings = 'warning' in reading && reading.warning !== undefined ? [reading.warning] : [];
  return { can, sent: calls.sent, unasked: found.unasked, warnings };
}

/** The row without what spares its upstream the very thing that a probe asks about. */
const asUpstreamsSee = (channel: ProbedChannel['channel']): ProbedChannel['channel'] => ({
  ...channel,
  params: { ...channel.params, efforts: [...effortScale], system: 'anywhere' },
});

/** Whether the row's calls ask for the usage of a stream. Else an answer without usage shows nothing. */
function asksForUsage(channel: ProbedChannel['channel']): boolean {
  const type: ChannelType<OwnAttributeName> = channelTypes[channel.type];
  return channel.params.stream && channel.params.include_usage && (type.reportsUsage?.(channel) ?? true);
}
