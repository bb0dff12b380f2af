import { DatabaseSync } from 'node:sqlite';

/** DynamoDB keeps stream records for 24 hours. */
const keptSeconds = 24 * 60 * 60;
/** How long a statement waits while the emulator writes. */
const busyTimeoutMs = 5_000;

/**
 * The emulator numbers each stream record by the largest number of its table, which it looks for among all records:
 * without an index a write takes 0.5 ms longer for each 1,000 records, and so does each read. It never deletes records
 * either. To be called on the emulator's file when the emulator has created it.
 * The newest record of each table stays, because the next number follows from it.
 * @throws an error of SQLite: the file is one of an emulator whose tables have other names
 */
export function tendStreamRecords(file: string, nowSeconds: number): void {
  const database = new DatabaseSync(file, { timeout: busyTimeoutMs });
  try {
    database.exec(`
      CREATE INDEX IF NOT EXISTS relay_stream_order
        ON _stream_records (table_name, CAST(sequence_number AS INTEGER));
      CREATE INDEX IF NOT EXISTS relay_stream_ends
        ON _stream_records (table_name, shard_id, sequence_number)`);
    database
      .prepare(
        `DELETE FROM _stream_records
         WHERE created_at < ? AND id NOT IN (SELECT MAX(id) FROM _stream_records GROUP BY table_name)`,
      )
      .run(nowSeconds - keptSeconds);
  } finally {
    database.close();
  }
}
