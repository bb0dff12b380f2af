/** The widgets of the synthesized dashboard, as CloudWatch gets them. */
import { readable, resourcesOf, type Template } from './synthesize.ts';

export interface Widget {
  properties: {
    title?: string;
    /** Names and values as `[namespace, metric, dimension, value, ..., options]`, or one `{expression}`. */
    metrics?: unknown[][];
    alarms?: string[];
  };
}

export function dashboardOf(template: Template): Widget[] {
  const [[, dashboard] = []] = resourcesOf(template, 'AWS::CloudWatch::Dashboard');
  const body = readable(dashboard?.Properties.DashboardBody);
  return (JSON.parse(body) as { widgets: Widget[] }).widgets;
}
