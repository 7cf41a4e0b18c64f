// What a kind of chart is, and the rows that its panels are of.

import { Shown, grouped, type Measure, type Scores, type Statistic, type TextName } from '../data';
import { labelOf, type Dimension, type Series } from '../series';
import type { Filter } from '../filters';
import type { Source } from '../table';
import type { Describe } from '../tooltip';
import type { Spec } from '../vega';

/** A column that a chart spreads out or that a reader fixes to one value. */
export type Axis =
  | 'model'
  | 'from'
  | 'to'
  | 'transform'
  | 'parameter'
  | 'data'
  | 'variant'
  | 'factor'
  | 'layer'
  | 'other';

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
  build: () => { spec?: Spec; text: string };
}

export interface Kind {
  name: string;
  title: string;
  legend: 'null' | 'plain' | 'none'; // whether it has a legend, and the null in it
  suits: (scores: Scores, measure: Measure, rows: number[]) => boolean;
  by: Dimension[]; // what its series can be
  // the columns that it spreads out, besides its series: nobody need fix them
  spread: (context: Omit<Context, 'series'>) => Axis[];
  list?: (
    context: Omit<Context, 'series'>,
  // what it draws, where that is no rows
  ) => { data: string; factor: string; layer: string; parameter?: string }[];
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
export type Fixed = (typeof fixed)[number];

/** What a reader has chosen, of a context. */
type Choosing = Pick<Context, 'choice' | 'measure'>;

/** Which end of a network is meant where no layer is chosen. */
export const layerEnds = { '': 'the deepest', first: 'the shallowest' };

/**
 * What a chart draws, as far as its columns can be fixed: rows of scores, or what stands beside
 * them.
 */
export interface Drawn {
  items: number[];
  text: (name: Fixed, item: number) => string;
  rows: boolean;
}

export function rowsOf(c: Pick<Context, 'scores' | 'rows'>): Drawn {
  return { items: c.rows, text: (name, row) => c.scores.text(name, row), rows: true };
}

export function listOf(
  all: { data: string; factor: string; layer: string; parameter?: string }[],
): Drawn {
  return {
    items: all.map((_, i) => i),
    text: (name, i) => (name === 'variant' ? '' : (all[i][name] ?? '')),
    rows: false,
  };
}

/** The values to which a column can be fixed. Which factors there are depends on the data. */
export function offered(c: Choosing, drawn: Drawn, name: Fixed, free: Set<string>): string[] {
  let items = drawn.items;
  if (name === 'factor' && !free.has('data')) {
    const data = settled(c, drawn, 'data', free);
    items = items.filter((i) => drawn.text('data', i) === data);
  }
  return [...new Set(items.map((i) => drawn.text(name, i)))];
}

/**
 * The value to which a column is fixed: what the reader chose, if it is there, else all samples,
 * the mean over values, or the first. The factors that probes read are side by side until one is
 * chosen.
 */
export function settled(c: Choosing, drawn: Drawn, name: Fixed, free: Set<string>): string {
  const asked = c.choice(name);
  if (name === 'parameter' || name === 'layer') return asked;
  const values = offered(c, drawn, name, free);
  if (values.includes(asked)) return asked;
  return values.includes('') || (name === 'factor' && drawn.rows && c.measure.probes)
    ? ''
    : (values[0] ?? '');
}

/** The rows of the statistic, with everything fixed that is not spread out. */
export function chosen(c: Context, spread: Axis[]): number[] {
  const free = new Set<string>([...spread, c.series.dimension]),
    s = c.scores,
    drawn = rowsOf(c);
  const at = Object.fromEntries(
    fixed.map((name) => [name, free.has(name) ? '' : settled(c, drawn, name, free)]),
  );
  const rows = c.rows.filter(
    (row) =>
      s.text('statistic', row) === c.statistic.name &&
      (free.has('data') || s.text('data', row) === at.data) &&
      (free.has('variant') || s.text('variant', row) === at.variant) &&
      (free.has('factor') ||
        (c.measure.probes && at.factor === '') ||
        s.text('factor', row) === at.factor) &&
      (free.has('parameter')
        ? s.text('parameter', row) !== ''
        : at.parameter === ''
          ? s.shown(row) === Shown.overview
          : s.text('parameter', row) === at.parameter),
  );
  if (free.has('layer') || !c.measure.layered) return rows;
  return atLayer(rows, c.choice('layer'), (row) => ({
    model: s.text('model', row),
    layer: s.text('layer', row),
    depth: s.number('depth', row) ?? 0,
  }));
}

/**
 * Those of a list that are of what is chosen: of one data set and one factor, and of one value of
 * the parameter or of all.
 */
export function fitting<
  T extends { data: string; factor: string; layer: string; parameter?: string },
>(c: Choosing, all: T[]): T[] {
  const drawn = listOf(all),
    none = new Set<string>();
  const data = settled(c, drawn, 'data', none),
    factor = settled(c, drawn, 'factor', none),
    parameter = c.choice('parameter');
  return all.filter(
    (d) =>
      d.data === data &&
      d.factor === factor &&
      (parameter === '' || !d.parameter || d.parameter === parameter),
  );
}

/**
 * What is of one layer of each model: by its name, or of the first or the last layer. Of several
 * layers of that depth, which lie beside each other, the first or the last in order.
 */
export function atLayer<T>(
  all: T[],
  chosen: string,
  of: (item: T) => { model: string; layer: string; depth: number },
): T[] {
  if (chosen !== '' && chosen !== 'first') return all.filter((item) => of(item).layer === chosen);
  const end = new Map<string, { layer: string; depth: number }>();
  for (const item of all) {
    const { model, layer, depth } = of(item),
      known = end.get(model);
    if (!known || (chosen === 'first' ? depth < known.depth : depth >= known.depth))
      end.set(model, { layer, depth });
  }
  return all.filter((item) => end.get(of(item).model)?.layer === of(item).layer);
}

/**
 * Panels that tell apart what neither the series nor the axes do: models, transformations, and the
 * factors that probes read.
 */
export function panelsBy(c: Context, rows: number[], spread: Axis[]): [string, number[]][] {
  const { dimension } = c.series;
  const modelled =
    dimension === 'model' ||
    dimension.startsWith('tag:') ||
    spread.some((a) => a === 'model' || a === 'from');
  const moved = dimension === 'transform' || spread.includes('transform');
  const valued = moved || dimension === 'parameter' || spread.includes('parameter');
  const factored = !c.measure.probes || dimension === 'factor' || spread.includes('factor');
  return grouped(rows, (row) =>
    [
      modelled ? '' : c.scores.text('model', row),
      under(
        factored ? '' : c.scores.text('factor', row),
        moved ? '' : c.scores.text('transform', row),
      ),
      valued ? '' : c.scores.text('parameter', row),
    ]
      .filter(Boolean)
      .join(' '),
  );
}

/** A factor, a transformation, or both. */
export function under(factor: string, transform: string): string {
  return [factor, transform].filter(Boolean).join(' under ');
}

export function points(c: Context, rows: number[], x: (row: number) => number | string): Point[] {
  const s = c.scores;
  return rows.flatMap((row) => {
    const value = s.number('value', row);
    if (value === null) return [];
    const series = c.series.of(row);
    return [
      {
        id: row,
        series,
        line: `${series}, ${s.text('model', row)}`,
        x: x(row),
        value,
        low: s.number('low', row),
        high: s.number('high', row),
        null: s.number('null', row),
      },
    ];
  });
}

/** Whether points make lines. Layers that lie beside each other, several at a depth, do not. */
export function isJoined(points: Point[]): boolean {
  return points.length < 2 * new Set(points.map((p) => `${p.line}\0${p.x}`)).size;
}

/** Whether a column has several values among rows. */
export function varies(scores: Scores, name: TextName, rows: number[]): boolean {
  return (
    rows.length > 0 && rows.some((row) => scores.text(name, row) !== scores.text(name, rows[0]))
  );
}

/** A value of a column as a reader sees it. */
export function named(axis: Axis, value: string): string {
  if (axis === 'layer' || axis === 'other' || axis === 'from' || axis === 'to')
    return value.replace(/_output_0$/, '');
  return labelOf(axis as Dimension, value);
}
