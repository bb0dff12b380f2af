/**
 * Draws the picture of the dashboard for the README: `node infra/bootstrap/bootstrap.mjs test/infra/dashboard-picture.ts`. Runs the local
 * stack under traffic for three minutes, reads the metrics out of the functions' log lines as CloudWatch would, and draws
 * the widgets of the synthesized dashboard with them.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { metricsOf } from '../support/embedded-metrics.ts';
import { dashboardOf } from './dashboard-body.ts';
import { drawDashboard } from './picture-svg.ts';
import { runTraffic } from './picture-traffic.ts';
import type { Template } from './synthesize.ts';

const projectFolder = join(import.meta.dirname, '..', '..');
export const pictureFile = join(projectFolder, 'docs', 'images', 'dashboard.svg');
const durationSeconds = 180;
const stepMs = 4_000;

async function main(): Promise<void> {
  const template = JSON.parse(
    readFileSync(join(projectFolder, 'cdk.out', 'relay.template.json'), 'utf8'),
  ) as Template;
  const { fromMs, untilMs, lines } = await runTraffic(durationSeconds);
  const values = lines
    .filter((line) => line.includes('"_aws"'))
    .flatMap((line) => metricsOf(line.slice(line.indexOf('{'))));
  const span = { fromMs, steps: Math.floor((untilMs - fromMs) / stepMs), stepMs };
  writeFileSync(pictureFile, drawDashboard(dashboardOf(template), values, span));
  process.stdout.write(`${lines.length} lines, ${values.length} metric values -> ${pictureFile}\n`);
}

if (import.meta.main) await main();
