/**
 * Requests to the vendor of a call in a background window: the submission, with failover like any call, then questions to the
 * vendor that took it. Must hold no secret longer than one request.
 */
import { buildFollowUp, dialectOf } from '../../upstreams/called-channel.ts';
import type { SubmittedResponse, Submissions } from '../../upstreams/dialect.ts';
import { loadDialect } from '../../upstreams/dialects/dialects.ts';
import { hostOf } from '../../upstreams/endpoint-rules.ts';
import { UpstreamFailure } from '../../upstreams/exchange.ts';
import { readText } from '../../upstreams/read-failure.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { ChatCall } from '../call/call.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { HealthRecorder } from '../health/health-recorder.ts';
import { exchangeText } from '../http/exchange-text.ts';
import type { Vendor } from '../ports/stored.ts';
import { Dispatch } from './dispatch.ts';
import type { WordTally } from './word-tally.ts';

const responseBytesMax = 16 * 1024 * 1024;

/** Thrown to end the dispatch when a vendor has taken the call. */
class Submitted extends Error {
  override readonly name = 'Submitted';
  readonly vendor: Vendor;

  constructor(vendor: Vendor) {
    super('submitted');
    this.vendor = vendor;
  }
}

const loadSubmissions = async (channel: ChannelRow, model: string): Promise<Submissions> => {
  const { submissions } = await loadDialect(dialectOf(channel, model));
  if (!submissions) throw new UpstreamFailure('junk');
  return submissions;
};

/** Throws a Refusal if no candidate takes the call. */
export async function submitCall(
  ports: ChatPorts,
  asked: { call: ChatCall; health: HealthRecorder; words: WordTally },
  hours: string,
): Promise<Vendor> {
  const send: ChatPorts['transport']['send'] = async (request, signal) => {
    const { candidate } = dispatch.report().history?.().tried.at(-1) ?? {};
    if (!candidate) throw new UpstreamFailure('junk');
    const { channel, secret, model } = candidate;
    const submissions = await loadSubmissions(channel, model);
    const reply = await ports.transport.send(submissions.submit(request, hours), signal);
    if (reply.status < 200 || reply.status > 299) return reply;
    const taken = submissions.read(await readText(reply, responseBytesMax));
    if (!taken) throw new UpstreamFailure('junk');
    throw new Submitted({ channel: channel.id, secret, model, url: request.url, vendorId: taken.id });
  };
  const dispatch = new Dispatch({ ...ports, transport: { send } }, { ...asked, searched: undefined });
  try {
    for await (const batch of dispatch.chunks) void batch;
  } catch (error) {
    if (error instanceof Submitted) return error.vendor;
    throw error;
  } finally {
    await dispatch.awaitWrites();
  }
  throw new UpstreamFailure('junk');
}

/** The vendor no longer has the response: the answer is lost, and costs nothing. */
const lostResponse: SubmittedResponse = {
  id: '',
  isRunning: false,
  response: { object: 'response', status: 'failed', error: { code: 'server_error', message: 'It is gone.' } },
};

const bounds = { timeoutMs: 20_000, charactersMax: responseBytesMax };

/** Asks the vendor for the response, or to cancel it. Returns undefined if the reply is unclear. Never rejects. */
export async function askVendor(
  ports: Pick<ChatPorts, 'clock' | 'secrets' | 'transport'>,
  channel: ChannelRow,
  { vendor, cancels }: { vendor: Vendor; cancels: boolean },
): Promise<SubmittedResponse | undefined> {
  const { secret: reference, model, url, vendorId } = vendor;
  try {
    const submissions = await loadSubmissions(channel, model);
    // Read the secret for the host that took the call. The channel's row may name another host by now, whose secret this one must not get.
    const secret = reference && (await ports.secrets.read(reference, hostOf(url)));
    const ask = async (cancelling: boolean): Promise<SubmittedResponse | undefined> => {
      const at = { url: submissions.address(url, vendorId, cancelling), dialect: dialectOf(channel, model) };
      const request = buildFollowUp(channel, { ...at, method: cancelling ? 'POST' : 'GET', secret });
      const reply = await exchangeText(ports, request, bounds);
      if ('problem' in reply) return undefined;
      const { status, body } = reply;
      if (status === 404 || status === 410) return lostResponse;
      if (status >= 200 && status <= 299) return submissions.read(body);
      // A response that has ended may refuse to be cancelled.
      return cancelling && status < 500 ? ask(false) : undefined;
    };
    return await ask(cancels);
  } catch {
    return undefined;
  }
}
