// What a kind of chart is, and the rows that its panels are of.

import { Shown, grouped, type Measure, type Scores, type Statistic, type TextName } from '../data';
import { labelOf, type Dimension, type Series } from '../series';
import type { Filter } from '../filters';
import type { Source } from '../table';
import type { Describe } from '../tooltip';
import type { Spec } from '../vega';

/** A column that a chart spreads out or that a reader fixes to one value. */
export type Axis = 'model' | 'from' | 'to' | 'transform' | 'parameter' | 'data' | 'variant' | 'factor' | 'layer' | 'other';

/** What a chart is made from. */
export interface Context {
  scores: Scores;
  measure: Measure;
  statistic: Statistic;
  rows: number[]; // of the measure, trials summarised, that pass the filters
  series: Series;
  filter: Filter;
  choice: (name: string) => string; // what the reader has chosen; '' where nothing is
}

export interface Panel {
  title: string;
  rows: number[]; // what it shows, for its table
  source?: Source; // its table, where what it shows are no rows
  describe?: Describe; // its tooltip, likewise
  wide?: boolean;
  build: () => { spec?: Spec; says: string };
}

export interface Kind {
  name: string;
  title: string;
  legend: 'null' | 'plain' | 'none'; // whether it has a legend, and the null in it
  suits: (scores: Scores, measure: Measure, rows: number[]) => boolean;
  by: Dimension[]; // what its series can be
  spread: (context: Omit<Context, 'series'>) => Axis[]; // the columns that it spreads out, besides its series: nobody need fix them
  panels: (context: Context) => Panel[];
}

/** A point of a chart. */
export interface Point {
  id: number; // its row
  series: string;
  line: string; // what it is joined with
  x: number | string;
  value: number;
  low: number | null;
  high: number | null;
  null: number | null;
}

/** The columns of which a chart shows one value, where it does not spread them out. */
export const fixed = ['data', 'variant', 'parameter', 'factor', 'layer'] as const;

/** Which end of a network is meant where no layer is chosen. */
export const layerEnds = { '': 'the deepest', first: 'the shallowest' };

/** The rows of the statistic, with everything fixed that is not spread out. */
export function chosen(c: Context, spread: Axis[]): number[] {
  const free = new Set<string>([...spread, c.series.dimension]);
  const wanted = (name: (typeof fixed)[number]) => c.choice(name) || defaultOf(c, name);
  const at = Object.fromEntries(fixed.map((name) => [name, wanted(name)]));
  const s = c.scores;
  const rows = c.rows.filter((row) =>
    s.text('statistic', row) === c.statistic.name &&
    (free.has('data') || s.text('data', row) === at.data) &&
    (free.has('variant') || s.text('variant', row) === at.variant) &&
    (free.has('factor') || s.text('factor', row) === at.factor) &&
    (free.has('parameter') ? s.text('parameter', row) !== '' : at.parameter === '' ? s.shown(row) === Shown.overview : s.text('parameter', row) === at.parameter));
  return free.has('layer') || !c.measure.layered ? rows : atLayer(s, rows, c.choice('layer'));
}

/** What is shown of a column where the reader chose nothing: all samples, the mean over values, else the first. */
export function defaultOf(c: Omit<Context, 'series'>, name: (typeof fixed)[number]): string {
  if (name === 'parameter' || name === 'layer') return '';
  const values = c.scores.distinct(name, c.rows);
  return values.includes('') ? '' : (values[0] ?? '');
}

// atLayer takes the rows of a layer by its name, or of the first or last of each model.
function atLayer(scores: Scores, rows: number[], layer: string): number[] {
  if (layer !== '' && layer !== 'first') return rows.filter((row) => scores.text('layer', row) === layer);
  const end = new Map<string, number>();
  for (const row of rows) {
    const model = scores.text('model', row), depth = scores.number('depth', row) ?? 0, known = end.get(model);
    if (known === undefined || (layer === 'first' ? depth < known : depth > known)) end.set(model, depth);
  }
  return rows.filter((row) => scores.number('depth', row) === end.get(scores.text('model', row)));
}

/** Panels that tell apart what neither the series nor the axes do: models and transformations. */
export function panelsBy(c: Context, rows: number[], spread: Axis[]): [string, number[]][] {
  const { dimension } = c.series;
  const modelled = dimension === 'model' || dimension.startsWith('tag:') || spread.some((a) => a === 'model' || a === 'from');
  const moved = dimension === 'transform' || spread.includes('transform');
  const valued = moved || dimension === 'parameter' || spread.includes('parameter');
  return grouped(rows, (row) => [
    modelled ? '' : c.scores.text('model', row),
    moved ? '' : c.scores.text('transform', row),
    valued ? '' : c.scores.text('parameter', row),
  ].filter(Boolean).join(' '));
}

export function points(c: Context, rows: number[], x: (row: number) => number | string): Point[] {
  const s = c.scores;
  return rows.flatMap((row) => {
    const value = s.number('value', row);
    if (value === null) return [];
    const series = c.series.of(row);
    return [{
      id: row, series, line: `${series}, ${s.text('model', row)}`, x: x(row), value,
      low: s.number('low', row), high: s.number('high', row), null: s.number('null', row),
    }];
  });
}

/** Whether a column has several values among rows. */
export function varies(scores: Scores, name: TextName, rows: number[]): boolean {
  return rows.length > 0 && rows.some((row) => scores.text(name, row) !== scores.text(name, rows[0]));
}

/** A value of a column as a reader sees it. */
export function named(axis: Axis, value: string): string {
  if (axis === 'layer' || axis === 'other' || axis === 'from' || axis === 'to') return value.replace(/_output_0$/, '');
  return labelOf(axis as Dimension, value);
}
