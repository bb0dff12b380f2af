import { describe, expect, it } from 'vitest';
import { readCommand } from './options.ts';
import { allFaults, configurationEdits, storeFaults } from './plan/fault-kinds.ts';
import { cycleMs, faultPlan, quotaFor } from './plan/fault-plan.ts';
import { markdownTable } from './report/report.ts';
import { plotSvg, stepFor } from './report/plot.ts';

describe('the options', () => {
  it('have defaults, and a seed by chance', () => {
    expect(readCommand([], 42)).toEqual({
      run: 'soak',
      options: {
        minutes: 10,
        seed: 42,
        workers: 5,
        faults: allFaults,
        report: 'soak-report',
        lie: undefined,
      },
    });
    expect(readCommand(['--scenario', 'crash'], 1)).toEqual({ run: 'crash' });
  });

  it.each([
    [['--minutes', 'ten'], '--minutes is ten; wanted: a number from 0.2 to 1440'],
    [['--minutes='], '--minutes is ; wanted: a number from 0.2 to 1440'],
    [['--seed', '1.5'], '--seed is 1.5; wanted: a whole number from 0 to 4294967296'],
    [['--workers', '99'], '--workers is 99; wanted: a whole number from 1 to 12'],
    [['--faults', 'freeze,frost'], '--faults has frost; wanted some of '],
    [['--lie', 'white'], '--lie is white; wanted one of lost-settle, '],
    [['--scenario', 'fire'], '--scenario is fire; wanted: crash'],
    [['--scenario', 'crash', '--seed', '1'], '--scenario takes no --seed'],
    [['--hours', '1'], "Unknown option '--hours'"],
  ])('are refused by name: %j', (parameters, message) => {
    const command = readCommand(parameters, 1);
    expect(command).toMatchObject({ run: 'wrong', message: expect.stringContaining(message) });
  });
});

describe('the plan', () => {
  it('is the same for the same seed, and another for another', () => {
    const plan = faultPlan(7, 2, allFaults);
    expect(faultPlan(7, 2, allFaults)).toEqual(plan);
    expect(faultPlan(8, 2, allFaults)).not.toEqual(plan);
  });

  it.each([0.2, 1, 10, 30])('has more of each kind than are wanted, in time: %d minutes', (minutes) => {
    const plan = faultPlan(7, minutes, allFaults);
    for (const kind of allFaults) {
      const times = plan.filter((fault) => fault.kind === kind).map(({ atMs }) => atMs);
      expect(times.length).toBeGreaterThan(quotaFor(minutes));
      expect(Math.max(...times)).toBeLessThan(minutes * 60_000);
    }
  });

  it('wants 20 of each kind in ten minutes, and in shorter runs in proportion', () => {
    expect([0.2, 1, 5, 10, 30].map(quotaFor)).toEqual([1, 2, 10, 20, 20]);
  });

  it('leaves edits of the configuration some seconds of a store that works', () => {
    const cycle = cycleMs(600_000);
    const within = (kinds: ReadonlySet<string>): number[] =>
      faultPlan(7, 10, allFaults).flatMap(({ kind, atMs }) =>
        kinds.has(kind) ? [(atMs % cycle) / cycle] : [],
      );
    expect(Math.max(...within(storeFaults))).toBeLessThan(0.5);
    expect(Math.min(...within(configurationEdits))).toBeGreaterThanOrEqual(0.5);
    expect(Math.max(...within(configurationEdits))).toBeLessThan(0.75);
  });
});

describe('the report', () => {
  it('has tables as the formatter writes them', () => {
    expect(markdownTable(['kind', 'n'], [['a|b', '1']])).toBe(
      ['| kind | n   |', '| ---- | --- |', '| a\\|b | 1   |'].join('\n'),
    );
  });

  it('has plots that are whole SVG, also of nothing', () => {
    const plot = { title: 'T & U', unit: 'ms', seconds: 60, series: [] };
    expect(plotSvg(plot)).toMatch(/^<svg [^]*T &amp; U, ms[^]*<\/svg>\n$/);
    const points = Array.from({ length: 2000 }, (_, second) => [second, second % 7] as const);
    const svg = plotSvg({ ...plot, seconds: 2000, series: [{ name: 'n', colour: '#000', points }] });
    expect(svg.length).toBeLessThan(20_000);
    expect(svg).not.toContain('NaN');
  });

  it.each([
    [7, 2],
    [100, 20],
    [0.3, 0.1],
  ])('has steps of 1, 2 or 5: up to %d by %d', (most, step) => {
    expect(stepFor(most)).toBeCloseTo(step);
  });
});
