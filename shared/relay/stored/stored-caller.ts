/** Who asks for what is stored: the key decides the account, which is part of the name of everything stored. */
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { RelayRequest } from '../http/http.ts';
import type { StoredReads } from './stored-reads.ts';

export interface StoredCaller {
  key: KeyRow;
  snapshot: Snapshot;
}

/** `id`: has the form of an id, which is all that is known of it. */
export interface AskedStored {
  id: string;
  request: RelayRequest;
  reads: StoredReads;
}
