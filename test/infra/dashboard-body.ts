/** The widgets of the synthesized dashboard, as CloudWatch gets them. */
import { readable, resourcesOf, type Template } from './synthesize.ts';

export interface Widget {
  type: 'metric' | 'alarm';
  x: number;
  y: number;
  width: number;
  height: number;
  properties: {
    title?: string;
    view?: 'timeSeries' | 'singleValue';
    stacked?: boolean;
    /** Names and values as `[namespace, metric, dimension, value, ..., options]`, or one `{expression}`. */
    metrics?: unknown[][];
    alarms?: string[];
    yAxis?: { left?: { min?: number; max?: number } };
  };
}

export function dashboardOf(template: Template): Widget[] {
  const [[, dashboard] = []] = resourcesOf(template, 'AWS::CloudWatch::Dashboard');
  const body = readable(dashboard?.Properties.DashboardBody);
  return (JSON.parse(body) as { widgets: Widget[] }).widgets;
}
