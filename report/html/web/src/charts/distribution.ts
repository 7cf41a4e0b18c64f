// Distributions: how a statistic is spread over the samples of a data set, or over the units of a
// layer.

import { grouped, type Distribution } from '../data';
import { count, number } from '../format';
import { joined, reading } from '../sentences';
import type { Source } from '../table';
import { colour, dash, tip, type Spec } from '../vega';
import { atLayer, fitting, type Context, type Kind, type Panel } from './kind';

const filledUpTo = 4; // series; more areas than this hide each other

export const distribution: Kind = {
  name: 'distribution',
  title: 'Distribution',
  legend: 'plain',
  suits: (scores, measure) =>
    (scores.packed.distributions ?? []).some((d) => d.measure === measure.name),
  by: ['model', 'transform'],
  spread: (c) => [
    'variant',
    ...((c.scores.packed.distributions ?? []).some(
      (d) => d.measure === c.measure.name && d.parameter !== '',
    )
      ? []
      : ['parameter' as const]),
  ],
  list: (c) => distributionsOf(c),
  panels: (c) => {
    const all = fitting(c, distributionsOf(c));
    const byModel = c.series.dimension === 'model';
    return grouped(
      atLayer(all, c.choice('layer'), (d) => d),
      (d) =>
        [
          byModel ? '' : d.model,
          byModel ? d.transform : '',
          d.parameter,
          d.factor,
          d.layer === '' ? '' : 'layer',
        ]
          .filter(Boolean)
          .join(' '),
    ).map(([title, found]) => panel(c, title.replace(/ ?layer$/, '') || c.statistic.title, found));
  },
};

/** The distributions of the statistic that pass the report's filters. */
export function distributionsOf(c: Omit<Context, 'series'>): Distribution[] {
  return (c.scores.packed.distributions ?? []).filter(
    (d) =>
      d.measure === c.measure.name &&
      d.statistic === c.statistic.name &&
      c.filter.passes({
        model: d.model,
        transform: d.transform,
        data: d.data,
        layer: d.layer,
        factor: d.factor,
        parameter: d.parameter,
      }),
  );
}

/** The value below which a share of the units lies, as near as the bins tell. */
export function quantile(d: Distribution, share: number): number {
  const step = (d.ends[1] - d.ends[0]) / d.counts.length;
  let left = share * total(d);
  for (let i = 0; i < d.counts.length; i++) {
    if (left <= d.counts[i] && d.counts[i] > 0) return d.ends[0] + (i + left / d.counts[i]) * step;
    left -= d.counts[i];
  }
  return d.ends[1];
}

/** How many samples or units there are. */
export function total(d: Distribution): number {
  return d.counts.reduce((a, b) => a + b, 0);
}

interface Bin {
  id: number;
  series: string;
  line: string;
  x: number;
  x2: number;
  share: number;
}

function panel(c: Context, title: string, found: Distribution[]): Panel {
  const series = (d: Distribution) => (c.series.dimension === 'model' ? d.model : d.transform);
  const drawn: Bin[] = [];
  const bins: { of: Distribution; low: number; high: number; count: number; share: number }[] = [];
  for (const d of found) {
    const n = total(d),
      step = (d.ends[1] - d.ends[0]) / d.counts.length;
    d.counts.forEach((counted, i) => {
      const low = d.ends[0] + i * step;
      drawn.push({
        id: bins.length,
        series: series(d),
        line: `${series(d)}, ${d.data}, ${d.layer}`,
        x: low,
        x2: low + step,
        share: counted / n,
      });
      bins.push({ of: d, low, high: low + step, count: counted, share: counted / n });
    });
    drawn.push({ ...drawn[drawn.length - 1], x: d.ends[1] }); // where the last bin ends
  }
  return {
    title,
    rows: [],
    source: sourceOf(title, bins),
    describe: (id) => {
      const b = bins[id];
      return [
        ['model', b.of.model],
        ['layer', b.of.layer],
        ['data', b.of.data],
        ['transformation', b.of.transform],
        ['parameter', b.of.parameter],
        ['factor', b.of.factor],
        [c.statistic.name, `${number(b.low)} to ${number(b.high)}`],
        [`${b.of.of}s`, `${count(b.count)} (${(100 * b.share).toFixed(1)} %)`],
        ['mean', number(b.of.mean[0])],
      ];
    },
    build: () => ({
      spec: histogram(c, drawn, found[0]?.of ?? 'sample'),
      text: joined(
        reading(c, 'distribution', [], found[0]?.of ?? 'sample'),
        ...found.slice(0, 3).map((d) => d.text),
      ),
    }),
  };
}

function sourceOf(
  title: string,
  bins: { of: Distribution; low: number; high: number; count: number; share: number }[],
): Source {
  const text = (name: string, get: (d: Distribution) => string) => ({
    title: name,
    numeric: false,
    cell: (i: number) => get(bins[i].of),
    key: (i: number) => get(bins[i].of),
  });
  const figure = (name: string, get: (i: number) => number, format: (v: number) => string) => ({
    title: name,
    numeric: true,
    cell: (i: number) => format(get(i)),
    key: get,
  });
  return {
    title: `Data of the chart: ${title}`,
    rows: bins.map((_, i) => i),
    columns: [
      text('model', (d) => d.model),
      text('layer', (d) => d.layer),
      text('data', (d) => d.data),
      text('transform', (d) => d.transform),
      text('value of parameter', (d) => d.parameter),
      figure('from', (i) => bins[i].low, number),
      figure('to', (i) => bins[i].high, number),
      figure('count', (i) => bins[i].count, count),
      figure('share', (i) => bins[i].share, number),
    ],
    csv: (rows) => [
      ['model', 'layer', 'data', 'transform', 'parameter', 'from', 'to', 'count'],
      ...rows.map((i) => [
        bins[i].of.model,
        bins[i].of.layer,
        bins[i].of.data,
        bins[i].of.transform,
        bins[i].of.parameter,
        bins[i].low,
        bins[i].high,
        bins[i].count,
      ]),
    ],
  };
}

function histogram(c: Context, drawn: Bin[], of: string): Spec {
  const few = new Set(drawn.map((b) => b.line)).size <= filledUpTo;
  const x = {
    field: 'x',
    type: 'quantitative',
    title: c.statistic.title,
    scale: { nice: false, zero: false },
    axis: { grid: false, tickCount: 6 },
  };
  const y = {
    field: 'share',
    type: 'quantitative',
    title: `share of ${of}s`,
    stack: null,
    axis: { format: '.0%', tickCount: 4, domain: false, ticks: false },
  };
  const color = colour(c.series),
    detail = { field: 'line', type: 'nominal' };
  return {
    data: { values: drawn },
    width: 'container',
    height: 200,
    autosize: { type: 'fit-x', contains: 'padding' },
    layer: [
      ...(few
        ? [
            {
              mark: { type: 'area', interpolate: 'step-after', opacity: 0.16 },
              encoding: { x, y, color, detail },
            },
          ]
        : []),
      {
        mark: { type: 'line', interpolate: 'step-after', strokeWidth: 1.8 },
        encoding: { x, y, color, detail, strokeDash: dash(c.series) },
      },
      {
        mark: { type: 'rect', opacity: 0 },
        encoding: { x, x2: { field: 'x2' }, y, y2: { datum: 0 }, detail, tooltip: tip },
      },
    ],
  } as unknown as Spec;
}
