/** What a month costs, line by line. Never asks AWS: prices are those of `aws-prices.ts`. */
import {
  flatRatePlans,
  prices,
  priceSources,
  type FlatRatePlan,
  type Price,
  type PriceName,
} from './aws-prices.ts';
import { checkWorkload } from './check-workload.ts';
import { idleUsage } from './idle-usage.ts';
import type { Taken } from './taken.ts';
import { trafficUsage } from './traffic-usage.ts';
import type { Workload } from './workload.ts';

/** Amounts in US dollars. `list`: at list prices. `billed`: without what AWS gives to every account each month. */
export interface Sum {
  list: number;
  billed: number;
}

export interface CostLine extends Sum {
  what: string;
  quantity: number;
  unit: string;
  usdEach: number;
  /** Where and when the price was read. */
  source: string;
}

export interface CostReport {
  workload: Workload;
  traffic: CostLine[];
  idle: CostLine[];
  sums: { traffic: Sum; perMillion: Sum; idle: Sum; month: Sum; year: Sum };
  /** What the reader has to know, in sentences. */
  remarks: string[];
}

export function costReport(workload: Workload): CostReport {
  checkWorkload(workload);
  // What is free is used up by the stack at rest first.
  const left = new Map<PriceName, number>();
  const priced = (taken: Taken[]): CostLine[] => taken.map((each) => lineOf(each, workload, left));
  const idle = priced(idleUsage(workload).filter(isBilled(workload)));
  const traffic = priced(trafficUsage(workload).filter(isBilled(workload)));
  const plan = planOf(workload);
  if (plan) traffic.push(planLine(workload.edge, plan));
  const month = add(sumOf(traffic), sumOf(idle));
  return {
    workload,
    traffic,
    idle,
    sums: {
      traffic: sumOf(traffic),
      perMillion: times(sumOf(traffic), workload.calls === 0 ? 0 : 1_000_000 / workload.calls),
      idle: sumOf(idle),
      month,
      year: times(month, 12),
    },
    remarks: plan ? planRemarks(workload, plan) : [],
  };
}

const planOf = ({ edge }: Workload): FlatRatePlan | undefined =>
  edge === 'pay-as-you-go' ? undefined : flatRatePlans[edge];

/** What the plan's price includes. Whether it includes bodies to the origin is not said: they are billed here. */
const inPlan = new Set<PriceName>(['cloudFrontOut', 'cloudFrontRequests', 'webAcl', 'webAclRequests']);

const isBilled =
  (workload: Workload) =>
  ({ price }: Taken): boolean =>
    planOf(workload) === undefined || !inPlan.has(price);

function lineOf({ price: name, what, quantity }: Taken, { region }: Workload, left: Map<PriceName, number>) {
  const price: Price = prices[name];
  const [usdEach, source] = price.byRegion[region];
  const free = Math.min(quantity, left.get(name) ?? price.free ?? 0);
  left.set(name, (left.get(name) ?? price.free ?? 0) - free);
  const { what: read, date } = priceSources[source];
  return {
    what,
    quantity,
    unit: price.unit,
    usdEach,
    list: quantity * usdEach,
    billed: (quantity - free) * usdEach,
    source: `${read} (${date})`,
  };
}

function planLine(name: Workload['edge'], { usd }: FlatRatePlan): CostLine {
  const { what, date } = priceSources.cloudFrontPlans;
  const source = `${what} (${date})`;
  return {
    what: `CloudFront, plan ${name}`,
    quantity: 1,
    unit: 'month',
    usdEach: usd,
    list: usd,
    billed: usd,
    source,
  };
}

function planRemarks(workload: Workload, { requests, gigabytesOut }: FlatRatePlan): string[] {
  const taken = trafficUsage(workload);
  const of = (name: PriceName): number => taken.find(({ price }) => price === name)?.quantity ?? 0;
  return of('cloudFrontRequests') > requests || of('cloudFrontOut') > gigabytesOut
    ? [
        `The traffic is above what plan ${workload.edge} allows (${requests} requests, ${gigabytesOut} GB): it may be slowed down.`,
      ]
    : [];
}

const sumOf = (lines: Sum[]): Sum => lines.reduce(add, { list: 0, billed: 0 });
const add = (a: Sum, b: Sum): Sum => ({ list: a.list + b.list, billed: a.billed + b.billed });
const times = ({ list, billed }: Sum, by: number): Sum => ({ list: list * by, billed: billed * by });
