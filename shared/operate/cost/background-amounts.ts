/** What the functions take that no caller waits for: figures that tests hold, and assumed ones, which say so. */

/** What the functions behind the table stream of `quotas` take. */
export const streamReaders = {
  recordsAtOnce: 100,
  /** `gathersSeconds` of functions `ledger` and `alerts`; test/infra/triggers.test.ts. */
  gathersSeconds: 5,
  functions: 2,
  memoryMegabytes: 256,
  /** Assumed, for a batch. */
  secondsOfBatch: 0.1,
} as const;

/** What a month of rest takes: there are no calls, and the schedules run. */
export const atRest = {
  hours: 730,
  /** Runs of sweeper and notify each minute, config every 5, grants every 15 minutes, alerts each hour. */
  runsPerHour: 60 + 60 + 12 + 4 + 1,
  /** Assumed: a scheduled run that finds nothing. */
  secondsOfRun: 0.05,
  memoryMegabytes: 256,
  /** Assumed: registrations and progress of the sweeper, due notices, pointer and rows of the configuration. */
  readsOfRun: 2,
  /** The function config reads the secret of each channel every 5 minutes. */
  secretReadsPerHour: 12,
  /** The origin secret and the seal key. */
  ownSecrets: 2,
  dashboards: 1,
  notices: 100,
  /** `OpenReservations` and `BadRows`, which are written when they are 0. */
  restMetrics: 2,
  /** In hours with traffic: of the stack, and of each channel. */
  stackMetrics: 10,
  channelMetrics: 3,
  /** CloudWatch stores logs compressed. Assumed. */
  logCompression: 0.2,
} as const;
