/** The matrix of requests: each place of each endpoint at each dialect. */
import { dialects, endpoints, type Dialect } from './endpoints.ts';
import { Observer, type Outcome } from './observe.ts';
import { isInside, listAllPlaces, type Place } from './places.ts';
import { findReason, reasons, type Reason } from './reasons.ts';
import { SdkTypes, type ObjectShape } from './sdk-types.ts';

export interface Cell {
  endpoint: Dialect;
  dialect: Dialect;
  path: string;
  /** `moot`: no effect, and a rule gives the reason. */
  outcome: Outcome | 'moot';
  strict: Outcome | 'moot';
  /** Inside another place that is not sent. */
  holder: string | undefined;
  reason: Reason | undefined;
  /** The relay's report. */
  seen: string;
}

export const types = new SdkTypes();
const typesOf = (endpoint: Dialect): ObjectShape[] =>
  endpoints[endpoint].types.map(([file, name]) => types.shapeOf(file, name));

const knownPlaces = new Map<Dialect, Place[]>();

/** Places of the stable and the beta types, each once. */
export function placesOf(endpoint: Dialect): Place[] {
  const places = knownPlaces.get(endpoint) ?? listPlacesOf(endpoint);
  knownPlaces.set(endpoint, places);
  return places;
}

function listPlacesOf(endpoint: Dialect): Place[] {
  const older = endpoints[endpoint].older.map(
    (name) => [name, { shape: { kind: 'number' }, isOptional: true }] as const,
  );
  const all = { kind: 'object', name: '', isOpen: false, fields: new Map(older) } as const;
  return listAllPlaces([...typesOf(endpoint), all], endpoints[endpoint]);
}

export async function judgeRequests(endpoint: Dialect, dialect: Dialect): Promise<Cell[]> {
  const observer = new Observer(endpoint, dialect, typesOf(dialect));
  const cells: Cell[] = [];
  for (const { path, ...place } of placesOf(endpoint)) {
    const holder = cells.findLast((cell) => isLeft(cell) && isInside(path, cell.path));
    if (holder) {
      cells.push({ ...holder, path, holder: holder.path });
      continue;
    }
    const { lenient, strict } = await observer.judge({ path, ...place });
    const at = { endpoint, dialect, path };
    const reason = findReason(reasons, at);
    const nameOf = (outcome: Outcome): Cell['outcome'] => (outcome === 'lost' && reason ? 'moot' : outcome);
    const { status, text, dropped } = strict.outcome === 'lost' ? strict.seen : lenient.seen;
    const seen = status === 200 ? `dropped: ${dropped.join()}` : `${status} ${text}`;
    cells.push({
      ...at,
      outcome: nameOf(lenient.outcome),
      strict: nameOf(strict.outcome),
      holder: undefined,
      reason,
      seen,
    });
  }
  return cells;
}

/** Places inside it share its outcome. */
const isLeft = ({ outcome, holder }: Cell): boolean =>
  holder === undefined && (outcome === 'named' || outcome === 'refused' || outcome === 'lost');

export const judgeAllRequests = async (): Promise<Cell[]> => {
  const cells: Cell[] = [];
  for (const endpoint of dialects)
    for (const dialect of dialects) cells.push(...(await judgeRequests(endpoint, dialect)));
  return cells;
};
