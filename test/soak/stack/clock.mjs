/**
 * Loaded into processes of functions by a soak (`NODE_OPTIONS=--import`). The first process that finds the file `next` takes
 * it and lives with a clock that is as many seconds ahead as the file says. The product knows nothing of it.
 */
import { readFileSync, renameSync } from 'node:fs';

const folder = process.env['SOAK_CLOCKS'];
const label = process.env['AWS_LAMBDA_LOG_STREAM_NAME'];

function takenSeconds() {
  if (folder === undefined || label === undefined) return 0;
  const taken = `${folder}/taken ${process.pid} ${label}`;
  try {
    renameSync(`${folder}/next`, taken);
    return Number(readFileSync(taken, 'utf8'));
  } catch {
    return 0;
  }
}

const aheadMs = takenSeconds() * 1000;
if (aheadMs !== 0) {
  const TrueDate = Date;
  globalThis.Date = class extends TrueDate {
    constructor(...parts) {
      super(...(parts.length === 0 ? [TrueDate.now() + aheadMs] : parts));
    }
    static now() {
      return TrueDate.now() + aheadMs;
    }
  };
}
