// Tuning curves: how the best units of a layer answer while the input that drives them most is
// moved.

import { grouped, type TuningCurve } from '../data';
import { number, shorten } from '../format';
import { look } from '../palette';
import { joined, nothing, reading } from '../sentences';
import { tip, type Spec } from '../vega';
import { atLayer, fitting, type Context, type Kind, type Panel } from './kind';

export const tuning: Kind = {
  name: 'tuning',
  title: 'Tuning curves',
  legend: 'none',
  suits: (scores, measure) => (scores.packed.curves ?? []).some((c) => c.measure === measure.name),
  by: ['model'],
  spread: () => ['variant', 'parameter'],
  list: (c) => curvesOf(c),
  panels: (c) => {
    const all = fitting(c, curvesOf(c));
    return grouped(
      atLayer(all, c.choice('layer'), (u) => u),
      (u) => [u.model, u.transform, u.factor].filter(Boolean).join(', '),
    ).map(([title, found]) => panel(c, title, found));
  },
};

function curvesOf(c: Omit<Context, 'series'>): TuningCurve[] {
  return (c.scores.packed.curves ?? []).filter(
    (u) =>
      u.measure === c.measure.name &&
      c.filter.passes({
        model: u.model,
        transform: u.transform,
        data: u.data,
        layer: u.layer,
        factor: u.factor,
      }),
  );
}

interface Step {
  of: TuningCurve;
  amount: number;
  value: number;
}

function panel(c: Context, title: string, found: TuningCurve[]): Panel {
  const steps: Step[] = found.flatMap((of) =>
    of.amounts.flatMap((amount, i) =>
      amount === null || of.values[i] === null ? [] : [{ of, amount, value: of.values[i] }],
    ),
  );
  steps.sort((a, b) => a.of.unit - b.of.unit || a.amount - b.amount);
  const fires = (s: Step) =>
    s.of.threshold[0] !== null && s.of.sign * s.value >= s.of.sign * s.of.threshold[0];
  const figure = (name: string, get: (s: Step) => number) => ({
    title: name,
    numeric: true,
    cell: (i: number) => number(get(steps[i])),
    key: (i: number) => get(steps[i]),
  });
  return {
    title: `${title}, ${shorten((found[0]?.layer ?? '').replace(/_output_0$/, ''), 40)}`,
    rows: [],
    source: {
      title: `Data of the chart: ${title}`,
      rows: steps.map((_, i) => i),
      columns: [
        figure('unit', (s) => s.of.unit),
        figure('amount', (s) => s.amount),
        figure('value', (s) => s.value),
        figure('threshold', (s) => s.of.threshold[0] ?? NaN),
      ],
      csv: (rows) => [
        ['model', 'layer', 'factor', 'unit', 'amount', 'value', 'threshold', 'sign'],
        ...rows.map((i) => [
          steps[i].of.model,
          steps[i].of.layer,
          steps[i].of.factor,
          steps[i].of.unit,
          steps[i].amount,
          steps[i].value,
          steps[i].of.threshold[0],
          steps[i].of.sign,
        ]),
      ],
    },
    describe: (id) => [
      ['layer', steps[id].of.layer],
      ['unit', String(steps[id].of.unit)],
      ['amount', number(steps[id].amount)],
      ['value', number(steps[id].value)],
      ['threshold', number(steps[id].of.threshold[0])],
      ['fires', fires(steps[id]) ? 'yes' : 'no'],
    ],
    build: () => ({
      spec: steps.length === 0 ? undefined : spec(steps, fires),
      text: joined(reading(c, 'tuning'), steps.length === 0 ? nothing : widest(found).text),
    }),
  };
}

function spec(steps: Step[], fires: (s: Step) => boolean): Spec {
  const names = [...new Set(steps.map((s) => `unit ${s.of.unit}`))];
  const color = {
    field: 'unit',
    type: 'nominal',
    title: null,
    scale: { domain: names, range: names.map((_, i) => look(i).colour) },
    legend: { orient: 'bottom', columns: 3, symbolType: 'stroke', title: null },
  };
  const x = {
    field: 'amount',
    type: 'quantitative',
    title: 'how far the input is moved',
    axis: { grid: false, tickCount: 6 },
  };
  const y = {
    field: 'value',
    type: 'quantitative',
    title: 'activation',
    scale: { zero: false },
    axis: { tickCount: 5, domain: false, ticks: false },
  };
  return {
    data: {
      values: steps.map((s, id) => ({
        id,
        unit: `unit ${s.of.unit}`,
        amount: s.amount,
        value: s.value,
        fires: fires(s),
      })),
    },
    width: 'container',
    height: 230,
    autosize: { type: 'fit-x', contains: 'padding' },
    layer: [
      { mark: { type: 'line', strokeWidth: 1.6 }, encoding: { x, y, color } },
      {
        mark: { type: 'point', filled: true },
        encoding: {
          x,
          y,
          color,
          size: { condition: { test: 'datum.fires', value: 34 }, value: 6 },
          tooltip: tip,
        },
      },
    ],
  } as unknown as Spec;
}

// widest is the curve of the unit that fires along the largest share of its trajectory.
function widest(found: TuningCurve[]): TuningCurve {
  return found.reduce((a, b) => ((b.firing[0] ?? 0) > (a.firing[0] ?? 0) ? b : a));
}
