/** Takes the readable rows of pages, and a sentence for each of the others. */
import type { Reading } from '../sum-reader.ts';

export interface ReadRows<Row> {
  rows: Row[];
  problems: string[];
}

export async function rowsIn<Row>(pages: AsyncIterable<Reading<Row>[]>): Promise<ReadRows<Row>> {
  const readings = (await Array.fromAsync(pages)).flat();
  return {
    rows: readings.flatMap((each) => ('row' in each ? [each.row] : [])),
    problems: readings.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])),
  };
}
