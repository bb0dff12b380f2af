/** Pages of an account's ledger, newest first, for `GET /v1/account/usage`. */
import { mapInputParts } from '../../wire/chat-response.ts';
import { convertToYuanNumber } from '../../billing/money.ts';
import {
  findAttributedName,
  isAttributedBy,
  isAttributedTo,
  type AttributedBy,
  type Attribution,
  type CloseRow,
  latePrefix,
  type LedgerRow,
  findLedgerTimeMs,
  grantPrefix,
} from '../../billing/ledger-row.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { decodePercent } from '../../wire/json.ts';
import type {
  UsageEntry,
  UsageList,
  UsageSum,
  UsageSums,
  AccountDay,
  AccountDays,
} from '../../wire/public-api.ts';
import type { AccountReader } from '../ports/money-stores.ts';
import { requestTimeMs, timeText } from '../../wire/ids.ts';
import { grantsModel, modelOf } from '../../billing/daily-keys.ts';
import { countRow, sumFigures, type DailySum } from '../../billing/daily-figures.ts';
import { showEndUser, readTags } from '../call/attribution.ts';
import { dayMs } from '../../wire/iso-time.ts';

const limitMax = 100;
const limitDefault = 20;
/** Rows of one read where few of them may be wanted. Some 1.2 KB each at most, so that they are one page of the store. */
const readMax = 500;

/**
 * Request ids sort by time, so one bounded read returns a page of requests. Ids of grants and of late charges do
 * not, so all of these are read: they are few. Of rows that are selected or summed a page may have few, or none, and still
 * have a next one. Throws an InvalidRequest for an invalid query.
 */
export async function listUsage(
  reader: Pick<AccountReader, 'requests' | 'grants' | 'late'>,
  account: string,
  query: URLSearchParams,
): Promise<UsageList | UsageSums> {
  const wanted = readWanted(query);
  const by = readBy(query);
  const limit = countParameter(query, 'limit', limitMax) ?? limitDefault;
  const cursor = readCursor(query.get('cursor'));
  const count = wanted || by ? readMax : limit;
  const ask = async (beforeId: string): Promise<CloseRow[]> => reader.requests(account, beforeId, count + 1);
  const others = Promise.all([reader.grants(account), reader.late(account)]).then((rows) => rows.flat());
  const after = cursor !== undefined && isOther(cursor) ? await otherOf(others, cursor) : cursor;
  const [requests, allOthers] = await Promise.all([ask(findFirstId(after)), others]);
  const older = allOthers.filter((row) => after === undefined || isOlder(row, after));
  // Between this row and the next read nothing is known.
  const end = requests.length > count ? requests[count - 1] : undefined;
  const rows = [...requests, ...older].filter(
    (row) => !(end && isOlder(row, end)) && (!wanted || isAttributedTo(row, wanted)),
  );
  if (by) return { ...pageOf(sumBy(rows, by), end), object: 'list' };
  const page = rows.toSorted(compareNewestFirst).slice(0, limit);
  return { ...pageOf(page.map(toUsageEntry), rows.length > page.length ? page.at(-1) : end), object: 'list' };
}

/** @param last that of the page, where there are more */
const pageOf = <Entry>(data: Entry[], last: LedgerRow | undefined) => ({
  data,
  has_more: last !== undefined,
  // A grant's id may contain any character; escaped, it can be pasted into a URL.
  next_cursor: last ? encodeURIComponent(last.id) : null,
});

function readWanted(query: URLSearchParams): Attribution | undefined {
  const tags = readTags(query.getAll('tag').join(), 'tag');
  const end_user = showEndUser(query.get('end_user') ?? '');
  return tags.size > 0 || end_user !== undefined ? { tags: Object.fromEntries(tags), end_user } : undefined;
}

function readBy(query: URLSearchParams): AttributedBy | undefined {
  const by = query.get('by') ?? undefined;
  if (by === undefined || isAttributedBy(by)) return by;
  throw new InvalidRequest(
    'invalid_value',
    'by',
    "Invalid value for 'by': expected 'end_user' or 'tag:' and the name of a tag.",
  );
}

/** The largest charge first. */
function sumBy(rows: readonly LedgerRow[], by: AttributedBy): UsageSum[] {
  const calls = rows.filter((row): row is CloseRow => row.kind !== 'grant');
  return [...Map.groupBy(calls, (row) => findAttributedName(row, by))]
    .map(([name, own]) => {
      const { counts, amounts } = sumFigures(own.map(countRow));
      return {
        object: 'usage.sum' as const,
        name: name ?? null,
        requests: counts.calls ?? 0,
        prompt_tokens: counts.prompt_tokens ?? 0,
        completion_tokens: counts.completion_tokens ?? 0,
        charge: convertToYuanNumber(amounts.charged ?? 0n),
      };
    })
    .toSorted((a, b) => b.charge - a.charge);
}

/** The last row of the previous page. A request's id contains its time; for a grant the row is needed. */
type Position = string | LedgerRow;

const idOf = (position: Position): string => (typeof position === 'string' ? position : position.id);
const timeOf = (position: Position): number =>
  typeof position === 'string' ? (requestTimeMs(position) ?? 0) : findLedgerTimeMs(position);

/** Requests that follow a position in the list have ids below this. */
function findFirstId(position: Position | undefined): string {
  if (position === undefined) return grantPrefix;
  return typeof position === 'string' ? position : timeText(timeOf(position) + 1);
}

const compareNewestFirst = (a: Position, b: Position): number =>
  timeOf(b) - timeOf(a) || (idOf(a) < idOf(b) ? 1 : -1);

const isOlder = (row: LedgerRow, position: Position): boolean =>
  row.id !== idOf(position) && compareNewestFirst(position, row) < 0;

const isOther = (id: string): boolean => id.startsWith(grantPrefix) || id.startsWith(latePrefix);

async function otherOf(others: Promise<LedgerRow[]>, id: string): Promise<LedgerRow> {
  const found = (await others).find((row) => row.id === id);
  if (!found) throw refuseCursor();
  return found;
}

function readCursor(written: string | null): string | undefined {
  if (written === null || written === '') return undefined;
  const id = decodePercent(written);
  // No request has an id that sorts after the ids of grants, and a read below such an id would return grants.
  const isRequest = requestTimeMs(id) !== undefined && id < grantPrefix;
  if (!isRequest && !isOther(id)) throw refuseCursor();
  return id;
}

const refuseCursor = (): InvalidRequest =>
  new InvalidRequest(
    'invalid_value',
    'cursor',
    "Invalid value for 'cursor': expected the 'next_cursor' of the previous page.",
  );

function toUsageEntry(row: LedgerRow): UsageEntry {
  const isGrant = row.kind === 'grant';
  const call: Partial<CloseRow> = isGrant ? {} : row;
  const hasTokens = call.prompt_tokens !== undefined;
  return {
    id: row.id,
    object: 'usage',
    created: Math.floor(findLedgerTimeMs(row) / 1000),
    kind: row.kind,
    endpoint: call.endpoint ?? null,
    model: call.model ?? null,
    alias: call.alias ?? null,
    key: call.key ?? null,
    charge: convertToYuanNumber(call.charge ?? 0n),
    prompt_tokens: call.prompt_tokens ?? null,
    completion_tokens: call.completion_tokens ?? null,
    ...mapInputParts('count', ({ count }) => (hasTokens ? (call[count] ?? 0) : null)),
    estimated: call.estimated ?? false,
    flag: call.flag ?? null,
    service_tier: call.service_tier ?? null,
    first_content_ms: call.first_content_ms ?? null,
    end: call.end ?? null,
    end_user: call.end_user ?? null,
    tags: call.tags ?? null,
    price: call.price ?? null,
    plan_slot: call.plan_slot ?? null,
    official: call.official ?? false,
    cost: call.cost === undefined ? null : convertToYuanNumber(call.cost),
    search_price: call.search_price === undefined ? null : convertToYuanNumber(call.search_price),
    amount: isGrant ? convertToYuanNumber(row.amount) : null,
    reason: isGrant ? row.reason : null,
  };
}

/** A whole number from 1 to `max`, with no more digits than it; undefined: there is none. Throws an InvalidRequest. */
function countParameter(query: URLSearchParams, name: string, max: number): number | undefined {
  const written = query.get(name);
  if (written === null) return undefined;
  const isShort = written.length <= String(max).length && /^\d+$/.test(written);
  const count = isShort ? Number(written) : 0;
  if (count >= 1 && count <= max) return count;
  throw new InvalidRequest(
    'invalid_value',
    name,
    `Invalid value for '${name}': expected a whole number from 1 to ${max}.`,
  );
}

// The usage of an account by day and model, newest first. Reads the sums of its days, never its ledger.

const daysMax = 31;
/** Some 350 bytes each, so that one answer costs at most 45 read units, and has at most 200 KB. */
export const sumsMax = 1_000;

/** How many days are asked for; undefined: none. Throws an InvalidRequest. */
export const readDays = (query: URLSearchParams): number | undefined =>
  countParameter(query, 'days', daysMax);

/** @param days counted back from today, by UTC */
export async function listDays(
  reader: Pick<AccountReader, 'days'>,
  { account, days, nowMs }: { account: string; days: number; nowMs: number },
): Promise<AccountDays> {
  const wanted = new Date(nowMs - (days - 1) * dayMs).toISOString().slice(0, 10);
  const sums = await reader.days(account, wanted, sumsMax);
  const last = sums.at(-1);
  // If more sums exist than were read, the oldest day may be incomplete, so drop it.
  const cut = sums.length === sumsMax && last ? startOf(last) : undefined;
  return {
    from: cut === undefined ? secondsOf(wanted) : cut + dayMs / 1000,
    data: sums.filter((sum) => modelOf(sum) !== grantsModel && startOf(sum) !== cut).map(describeDay),
  };
}

const secondsOf = (day: string): number => Date.parse(day) / 1000;
const startOf = ({ key }: DailySum): number => secondsOf(key.period.split('#')[1] ?? '');
/** Names of models have no `#`. */
/** Field by field: sums hold what the operator pays. */
export function describeDay(sum: DailySum): AccountDay {
  const { counts, amounts } = sum.figures;
  return {
    day: startOf(sum),
    model: modelOf(sum),
    calls: counts.calls ?? 0,
    failed_calls: counts.failures ?? 0,
    prompt_tokens: counts.prompt_tokens ?? 0,
    completion_tokens: counts.completion_tokens ?? 0,
    cached_tokens: counts.cached_tokens ?? 0,
    charge: convertToYuanNumber(amounts.charged ?? 0n),
    searches: counts.searches ?? 0,
  };
}
