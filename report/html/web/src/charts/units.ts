// Units by layer: a column for each layer, its units ordered by their score from bottom to top.

import { grouped, type Distribution } from '../data';
import { count, number } from '../format';
import { joined, reading } from '../sentences';
import { isUnit, tip, type Spec } from '../vega';
import { distributionsOf, quantile, total } from './distribution';
import { fitting, type Context, type Kind, type Panel } from './kind';

const steps = 40; // shares of the units of a layer

export const units: Kind = {
  name: 'units',
  title: 'Units by layer',
  legend: 'none',
  suits: (scores, measure) => {
    const of = (scores.packed.distributions ?? []).filter(
      (d) => d.measure === measure.name && d.of === 'unit',
    );
    return new Set(of.map((d) => d.layer)).size > 1;
  },
  by: ['model'],
  spread: () => ['layer', 'variant', 'parameter'],
  list: (c) => unitsOf(c),
  panels: (c) => {
    const all = fitting(c, unitsOf(c));
    return grouped(all, (d) => [d.model, d.transform, d.factor].filter(Boolean).join(', ')).map(
      ([title, found]) => panel(c, title, found),
    );
  },
};

function unitsOf(c: Omit<Context, 'series'>): Distribution[] {
  return distributionsOf(c).filter((d) => d.of === 'unit');
}

interface Tile {
  of: Distribution;
  rank: number; // share of the units below it
  value: number;
}

function panel(c: Context, title: string, found: Distribution[]): Panel {
  const layers = [...found].sort((a, b) => a.depth - b.depth);
  const tiles: Tile[] = layers.flatMap((d) =>
    Array.from({ length: steps }, (_, i) => ({
      of: d,
      rank: i / steps,
      value: quantile(d, (i + 0.5) / steps),
    })),
  );
  const ranks = (t: Tile) =>
    `${Math.round(100 * t.rank)} to ${Math.round(100 * (t.rank + 1 / steps))} %`;
  const text = (name: string, get: (t: Tile) => string) => ({
    title: name,
    numeric: false,
    cell: (i: number) => get(tiles[i]),
    key: (i: number) => get(tiles[i]),
  });
  const figure = (name: string, get: (t: Tile) => number, format = number) => ({
    title: name,
    numeric: true,
    cell: (i: number) => format(get(tiles[i])),
    key: (i: number) => get(tiles[i]),
  });
  return {
    title,
    rows: [],
    source: {
      title: `Data of the chart: ${title}`,
      rows: tiles.map((_, i) => i),
      columns: [
        text('layer', (t) => t.of.layer),
        figure(
          'depth',
          (t) => t.of.depth,
          (v) => String(v),
        ),
        text('share of units', ranks),
        figure(c.statistic.name, (t) => t.value),
      ],
      csv: (rows) => [
        ['model', 'layer', 'depth', 'from', 'to', c.statistic.name],
        ...rows.map((i) => [
          tiles[i].of.model,
          tiles[i].of.layer,
          tiles[i].of.depth,
          tiles[i].rank,
          tiles[i].rank + 1 / steps,
          tiles[i].value,
        ]),
      ],
    },
    describe: (id) => [
      ['model', tiles[id].of.model],
      ['layer', tiles[id].of.layer],
      ['units', `${ranks(tiles[id])} of ${count(total(tiles[id].of))}, the lowest first`],
      [c.statistic.name, number(tiles[id].value)],
    ],
    build: () => ({
      spec: spec(c, tiles, layers),
      text: joined(reading(c, 'units'), layers[0]?.units ?? ''),
    }),
  };
}

function spec(c: Context, tiles: Tile[], layers: Distribution[]): Spec {
  const key = (d: Distribution) => `${d.depth < 0 ? '·' : d.depth} ${d.layer}`;
  const unit = isUnit(c.statistic);
  return {
    data: {
      values: tiles.map((t, id) => ({
        id,
        x: key(t.of),
        low: t.rank,
        high: t.rank + 1 / steps,
        value: t.value,
      })),
    },
    width: 'container',
    height: 260,
    autosize: { type: 'fit-x', contains: 'padding' },
    mark: { type: 'rect' },
    encoding: {
      x: {
        field: 'x',
        type: 'ordinal',
        sort: layers.map(key),
        title: 'depth of the layer',
        scale: { padding: 0.06 },
        axis: {
          labelExpr: "split(datum.label, ' ')[0]",
          labelOverlap: true,
          labelAngle: 0,
          domain: false,
          ticks: false,
        },
      },
      y: {
        field: 'low',
        type: 'quantitative',
        title: 'units, the highest above',
        scale: { domain: [0, 1], nice: false },
        axis: { format: '.0%', tickCount: 4, grid: false, domain: false, ticks: false },
      },
      y2: { field: 'high' },
      color: {
        field: 'value',
        type: 'quantitative',
        title: null,
        scale: { scheme: 'viridis', ...(unit ? { domain: [0, 1] } : { nice: false, zero: false }) },
        legend: { gradientThickness: 10, offset: 10, tickCount: 5, gradientLength: 160 },
      },
      tooltip: tip,
    },
  } as unknown as Spec;
}
