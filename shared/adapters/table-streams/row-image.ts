import type { AttributeValue } from '@aws-sdk/client-dynamodb';

/** A row of a stream's record, as the SDK's document client would return it. */
export const rowOfImage = (image: Record<string, AttributeValue>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(image).map(([name, value]) => [name, valueOf(value)]));

function valueOf({ S, N, BOOL, NULL, L, M, SS, NS, BS }: AttributeValue): unknown {
  if (N !== undefined) return Number(N);
  if (NULL === true) return null;
  if (L !== undefined) return L.map(valueOf);
  if (M !== undefined) return rowOfImage(M);
  if (SS !== undefined) return new Set(SS);
  if (NS !== undefined) return new Set(NS.map(Number));
  if (BS !== undefined) return new Set(BS);
  // Bytes, which no row may hold, are all that is left.
  return S ?? BOOL ?? new Uint8Array();
}
