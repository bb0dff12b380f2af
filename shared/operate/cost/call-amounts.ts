/** What one call takes of each service: figures that tests hold, and assumed ones, which say so. */

/** What one call takes. Each figure names the test that holds it, or says that it is assumed. */
export const perCall = {
  /** test/unit/adapters/telemetry/log-volume.test.ts. Platform lines: none, by the system log level. */
  logBytes: 900,
  failureLogBytes: 3_500,
  /** test/docs/cost.test.ts: a chunk with a word, of a model with a name of 11 characters. */
  chunkBytes: 235,
  /** Headers of the answer, its first and last events. Assumed. */
  answerBytes: 1_000,
  /** Headers of the request, both to the function and to the upstream. Assumed. */
  requestHeaderBytes: 1_000,
  /** Beside the stream: reserve before it, settle and log line after it. Assumed, with a TLS round trip to the tables. */
  addedSeconds: 0.03,
  /** Starts of environments are billed too. Assumed: one call in a hundred starts one, for 1.5 s at 256 MB. */
  startSeconds: 0.015,
  /** test/contract/call-costs.test.ts: reserve and settle, one unit each while at most eight calls of a part run. */
  accountWrites: 2,
  /** One write more for each minute that a call runs beyond the first. */
  leaseSeconds: 60,
  /** test/contract/call-costs.test.ts: the row in a transaction, and its index. */
  rowWrites: 3,
  /** In a transaction: for each pair of account and model by day and by hour, for each of channel and model by day, twice. */
  sumWrites: 4,
  /** In a transaction, for each account. */
  monthWrites: 2,
  /** For each batch: what is open, and the minute. */
  batchWrites: 2,
  /** Pointer, cooldowns and what was learned, at most once in 8 s; key and account, at most once in 30 s. */
  reads: 4,
  /** With its index and DynamoDB's overhead. */
  rowBytes: 900,
  /** An environment reads the secret of a channel again after 2.5 to 5 minutes. */
  secretSeconds: 225,
  /** Records of the table stream of `quotas`. */
  streamRecords: 2,
} as const;
