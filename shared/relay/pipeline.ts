import type { Snapshot } from '../config/snapshot.ts';
import { admitKey, admitModel, readKey, type AdmittedKey } from './call/access.ts';
import { Bill } from './money/bill.ts';
import { Reservations } from './money/reservations.ts';
import type { ChatCall } from './call/chat-call.ts';
import { dispatch } from './dispatch/dispatch.ts';
import type { Endpoint, EndpointRequest } from '../endpoints/endpoint.ts';
import type { Handle, RelayRequest, RelayResponse } from './http/http.ts';
import { parseModelName } from './call/model-name.ts';
import type { ChatPorts } from './call/chat-ports.ts';
import type { RequestLog } from './ports/telemetry.ts';
import { asRefusal, refusalResponse, refuse } from './http/refusal.ts';
import { respond } from './answer/respond.ts';
import { routeTo } from './call/serving-channels.ts';
import { claimIdempotencyKey } from './call/idempotency-claim.ts';
import { matchRoute, refuseRoute } from './http/http-routes.ts';

/** The host ends an invocation without a word: stop in the protocol before it does. */
const hostReserveMs = 5_000;

/** The relay's one path for an endpoint: checks in their order, then the answer. */
export function relay(ports: ChatPorts, endpoint: Endpoint): Handle {
  const reservations = new Reservations(ports);
  return async (request) => {
    const startedMs = ports.clock.now();
    const record = newRecord(request, endpoint);
    try {
      return await serve(ports, reservations, endpoint, request, startedMs, record);
    } catch (error) {
      record.duration_ms = ports.clock.now() - startedMs;
      return refused(ports, request, record, error);
    }
  };
}

async function serve(
  ports: ChatPorts,
  reservations: Reservations,
  endpoint: Endpoint,
  request: RelayRequest,
  startedMs: number,
  record: RequestLog,
): Promise<RelayResponse> {
  if (matchRoute(request) !== endpoint.name) throw refuseRoute(request);
  const keyLookup = lookUpKey(ports, request);
  keyLookup.catch(() => {}); // Runs beside the configuration's read, whose refusal comes first.
  const snapshot = await ports.config.current();
  if (snapshot.settings.relayClosed) throw refuse('relay_closed', closedMessage(snapshot));
  const { row: key, account } = await keyLookup;
  record.key_hint = key.hint;
  record.account = key.account;

  const body = request.json();
  const read = endpoint.read(body);
  const model = parseModelName(read.request.model, read.request.official === true);
  admitModel(key, model);
  record.model = model.base;
  record.dropped_tools = read.droppedTools || undefined;
  const route = routeTo(snapshot, model.base);

  const identity = { requestId: request.id, created: Math.floor(startedMs / 1000), model: model.base };
  const untilMs = startedMs + snapshot.settings.limits.requestSeconds * 1000;
  const deadlineMs = Math.min(untilMs, request.hostDeadlineMs - hostReserveMs);
  const call = {
    identity,
    request: read.request,
    outputTokensAsked: read.outputTokensMax,
    model,
    key,
    account,
    snapshot,
    route,
    startedMs,
    deadlineMs,
    afterwards: [],
    told: {},
    sent: {},
    record,
  };
  return withDeadline(ports, deadlineMs, (signal) =>
    answer(
      ports,
      reservations,
      read,
      { ...call, signal },
      {
        header: request.headers['idempotency-key'],
        asked: [endpoint.name, body],
      },
    ),
  );
}

async function lookUpKey(ports: ChatPorts, request: RelayRequest): Promise<AdmittedKey> {
  const key = readKey(request.headers['authorization']);
  return admitKey(await ports.keys.find(key), ports.clock.now());
}

/** Reserves, then asks the upstream; from here on the answer closes what was opened, however it ends. */
async function answer(
  ports: ChatPorts,
  reservations: Reservations,
  read: EndpointRequest,
  call: ChatCall,
  idempotency: { header: string | undefined; asked: unknown },
): Promise<RelayResponse> {
  const claim = await claimIdempotencyKey(ports, call, idempotency.header, idempotency.asked);
  try {
    const bill = await Bill.open(reservations, ports.clock, call);
    const paid = { ...call, outputTokensLimit: bill.limitedTo ?? call.outputTokensAsked };
    const renderer = read.renderer(call.identity, () => Math.floor(ports.clock.now() / 1000));
    return await respond(ports, paid, { renderer, bill, claim }, dispatch(ports, paid));
  } catch (error) {
    await claim.finish(true);
    throw error;
  }
}

/** Runs with a signal that aborts at a time, whose timer ends with the work. */
async function withDeadline(
  ports: ChatPorts,
  untilMs: number,
  work: (signal: AbortSignal) => Promise<RelayResponse>,
): Promise<RelayResponse> {
  const deadline = new AbortController();
  const finished = new AbortController();
  const waitMs = Math.max(0, untilMs - ports.clock.now());
  void ports.clock.sleep(waitMs, finished.signal).then(() => {
    if (!finished.signal.aborted) deadline.abort();
  });
  try {
    const response = await work(deadline.signal);
    return { ...response, done: response.done.finally(() => finished.abort()) };
  } catch (error) {
    finished.abort();
    throw error;
  }
}

function closedMessage(snapshot: Snapshot): string {
  const { contact } = snapshot.settings;
  return `The relay is closed at the moment.${contact === '' ? '' : ` Contact: ${contact}`}`;
}

function newRecord(request: RelayRequest, endpoint: Endpoint): RequestLog {
  return { request_id: request.id, endpoint: endpoint.name, status: 0, end: 'refused', duration_ms: 0 };
}

function refused(ports: ChatPorts, request: RelayRequest, record: RequestLog, error: unknown): RelayResponse {
  const refusal = asRefusal(error);
  if (refusal.body.error.code === 'internal') ports.log.fault(request.id, error);
  record.status = refusal.status;
  record.code = refusal.body.error.code;
  record.reason = refusal.reason;
  ports.log.request(record);
  return refusalResponse(refusal, request.id);
}
