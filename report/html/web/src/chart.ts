// What a chart shows: the rows of its table that the reader has chosen, divided into panels and
// series by the fields that its description names.

import {
  Shown,
  grouped,
  type Chart,
  type Field,
  type Measure,
  type Scores,
  type Sides,
  type Statistic,
  type Table,
} from './data';
import { capital, shorten } from './format';
import type { Chosen } from './layer';
import { byNumber, dimensionTitle, labelOf, parameter, type Series } from './series';

/** What a chart is made from. */
export interface Context {
  scores: Scores;
  table: Table; // of the chart
  chart: Chart;
  measure: Measure;
  statistic: Statistic;
  rows: number[]; // of the table: those of the statistic that pass the filters
  series: Series;
  choice: (name: string) => string; // what the reader has chosen; '' where nothing is
  chosenValue: (transform: string) => string; // the value of the parameter that the reader has chosen; '' if none
  layer: () => Chosen | undefined; // the layer that the reader has chosen
}

/** A chart of some of the rows, beside the charts of others. */
export interface Panel {
  title: string;
  rows: number[];
}

/** A point of a chart. */
export interface Point {
  id: number; // its row
  series: string;
  line: string; // points with the same text are joined by a line
  x: number | string;
  x2: number | null; // where it ends, for bins
  value: number;
  low: number | null;
  high: number | null;
  null: number | null;
  branch: boolean; // of a layer inside a residual branch
  fires: boolean; // of tuning curves: the unit fires here
}

/** Fields that are fixed to one value, unless the axes, series or panels of a chart show them. */
export const fixed = ['data', 'variant', 'parameter', 'factor', 'layer'] as const;
export type Fixed = (typeof fixed)[number];

/** The choices of a layer by its depth, for models whose layers have different names. */
export const layerEnds = { '': 'the deepest', first: 'the shallowest' };

/** The texts of a description with its names filled in; panel and layer are of some rows. */
export function fill(c: Context, text: string, rows: number[], panel = ''): string {
  const { down, across } = sides(c) ?? { down: '', across: '' };
  return text
    .replaceAll('{series}', dimensionTitle(c.scores, c.series.dimension))
    .replaceAll('{statistic}', c.statistic.title)
    .replaceAll('{item}', rows.length > 0 ? c.table.text('of', rows[0]) : 'sample')
    .replaceAll('{layer}', rows.length > 0 ? named(c, 'layer', c.table.text('layer', rows[0]), 40) : '')
    .replaceAll('{down}', dimensionTitle(c.scores, down))
    .replaceAll('{across}', dimensionTitle(c.scores, across ?? ''))
    .replaceAll('{panel}', panel);
}

/** The pairs of sides, or the lines of bars, among which the reader can choose. */
export function sidesOffered(c: Omit<Context, 'series'>): Sides[] {
  const several = (f: Field) => c.table.varies(f, c.rows);
  return (c.chart.sides ?? []).filter((s) =>
    s.across
      ? several(s.down) && several(s.across)
      : several(s.down) ||
        (s.down === 'transform' && c.rows.some((row) => c.table.text('transform', row) !== '')),
  );
}

/** The name of the reader's choice of sides. */
export const sidesKey = (chart: Chart) => (chart.mark === 'bar' ? 'lines' : 'map');

export function sidesName({ down, across }: Sides): string {
  return across ? `${down}-${across}` : down;
}

/**
 * The sides of bars and tiles: those chosen, or the first offered. Filters, or the statistic, may
 * leave a single tile, for which none is offered; it has the first sides of the chart.
 */
export function sides(c: Omit<Context, 'series'>): Sides | undefined {
  const offered = sidesOffered(c);
  return (
    offered.find((s) => sidesName(s) === c.choice(sidesKey(c.chart))) ??
    offered[0] ??
    c.chart.sides?.[0]
  );
}

/** The fields that the axes and the series of a chart show. */
export function shownBy(c: Context): Set<Field> {
  const { down, across } = sides(c) ?? {};
  const shown = new Set([...(c.chart.spread ?? []), c.series.dimension]);
  for (const f of [down, across]) if (f) shown.add(f);
  if (down === 'pair') for (const f of ['factor', 'transform', 'parameter']) shown.add(f);
  return shown;
}

/** The values to which a field can be fixed. Which factors there are depends on the data. */
export function offered(c: Context, name: Fixed, shown: Set<Field>): string[] {
  let { rows } = c;
  if (name === 'factor' && !shown.has('data')) {
    const data = settled(c, 'data', shown);
    rows = rows.filter((row) => c.table.text('data', row) === data);
  }
  return c.table.distinct(name, rows);
}

/** Whether the factors that probes read are side by side until one is chosen. */
export function sideBySide(c: Context): boolean {
  return c.table === c.scores && Boolean(c.measure.probes);
}

/**
 * The value to which a field is fixed: what the reader chose, if it is there, else all samples, the
 * mean over values, or the first.
 */
export function settled(c: Context, name: Fixed, shown: Set<Field>): string {
  const asked = c.choice(name);
  if (name === 'parameter' || name === 'layer') return asked;
  const values = offered(c, name, shown);
  if (values.includes(asked)) return asked;
  return values.includes('') || (name === 'factor' && sideBySide(c)) ? '' : (values[0] ?? '');
}

// parameterOf returns the transformation and the value that are chosen; the transformation is ''
// where a single one has values.
function parameterOf(c: Context): [string, string] {
  const asked = c.choice('parameter'),
    at = asked.lastIndexOf('=');
  return at < 0 ? ['', asked] : [asked.slice(0, at), asked.slice(at + 1)];
}

/** The transformations that have several values. */
export function listed(c: Context): string[] {
  const rows = c.rows.filter((row) => c.table.text('parameter', row) !== '');
  return c.table.distinct('transform', rows);
}

// chosen returns the rows with everything fixed that the chart does not show. Of scores without a
// chosen value of the parameter it returns the means over values; other tables have no means, so
// all their values are returned.
function chosen(c: Context, shown: Set<Field>): number[] {
  const t = c.table;
  const [of, value] = parameterOf(c);
  const at = Object.fromEntries(
    fixed.map((name) => [name, shown.has(name) ? '' : settled(c, name, shown)]),
  );
  const rows = c.rows.filter(
    (row) =>
      (shown.has('data') || t.text('data', row) === at.data) &&
      (shown.has('variant') || t.text('variant', row) === at.variant) &&
      (shown.has('factor') ||
        (sideBySide(c) && at.factor === '') ||
        t.text('factor', row) === at.factor) &&
      (t !== c.scores
        ? [at.parameter, ''].includes(t.text('parameter', row)) || at.parameter === ''
        : shown.has('parameter')
          ? t.text('parameter', row) !== ''
          : value === '' || (of !== '' && t.text('transform', row) !== of)
            ? t.shown(row) === Shown.overview
            : t.text('parameter', row) === value),
  );
  return shown.has('layer') || (t === c.scores && !c.measure.layered)
    ? rows
    : atLayer(t, rows, c.choice('layer'));
}

// atLayer returns the rows of one layer of each model: by its name, or of the first or the last
// layer. Of several layers of that depth, which lie beside each other, the first or the last in
// order.
function atLayer(t: Table, rows: number[], chosen: string): number[] {
  if (chosen !== '' && chosen !== 'first')
    return rows.filter((row) => t.text('layer', row) === chosen);
  const end = new Map<string, number>();
  const depth = (row: number) => t.number('depth', row) ?? 0;
  for (const row of rows) {
    const known = end.get(t.text('model', row));
    if (
      known === undefined ||
      (chosen === 'first' ? depth(row) < depth(known) : depth(row) >= depth(known))
    )
      end.set(t.text('model', row), row);
  }
  return rows.filter(
    (row) => t.text('layer', end.get(t.text('model', row))!) === t.text('layer', row),
  );
}

// untransformed returns the rows; of a statistic that is the same under every transformation, only
// those of the first.
function untransformed(c: Context, rows: number[]): number[] {
  if (!c.statistic.untransformed) return rows;
  const first = new Map<string, string>();
  const of = (row: number) => `${c.table.text('model', row)}\0${c.table.text('data', row)}`;
  const view = (row: number) =>
    `${c.table.text('transform', row)}\0${c.table.text('parameter', row)}`;
  for (const row of rows) if (!first.has(of(row))) first.set(of(row), view(row));
  return rows.filter((row) => view(row) === first.get(of(row)));
}

/**
 * Panels tell apart what neither the series nor the axes do: models, transformations, and the
 * factors that probes read.
 */
export function panels(c: Context): Panel[] {
  const t = c.table,
    shown = shownBy(c),
    rows = inOrder(t, untransformed(c, chosen(c, shown)));
  // The next four: whether a title can do without the model, the transformation, the value of the
  // parameter, and the factor.
  const models =
    c.series.dimension.startsWith('tag:') ||
    ['model', 'reference', 'compared'].some((f) => shown.has(f)) ||
    !t.varies('model', c.rows);
  const moved = shown.has('transform'),
    valued = shown.has('parameter') || (moved && t === c.scores),
    factors = !sideBySide(c) || shown.has('factor');
  const factor = shown.has('factor') ? '' : settled(c, 'factor', shown);
  const label = (row: number) =>
    [
      models ? '' : t.text('model', row),
      [factors ? '' : t.text('factor', row), moved ? '' : t.text('transform', row)]
        .filter(Boolean)
        .join(' under '),
      valued ? '' : t.text('parameter', row),
    ]
      .filter(Boolean)
      .join(' ');
  return grouped(rows, label)
    .filter(([, of]) => c.chart.x.field !== 'parameter' || t.varies('parameter', of))
    .filter(([, of]) => of.some((row) => isOnAxis(c, row)))
    .map(([panel, of]) => {
      const text = panel ? c.chart.titled : c.chart.untitled,
        filled = fill(c, text, of, panel);
      const title = text.startsWith('{panel}') ? filled : capital(filled);
      return {
        title:
          factor === '' || title.includes(factor)
            ? title
            : `${title}, ${named(c, 'factor', factor, 40)}`,
        rows: of,
      };
    });
}

// isOnAxis reports whether a row has a place on the axis: only some have a confidence.
function isOnAxis(c: Context, row: number): boolean {
  return c.chart.x.field !== 'confidence' || c.table.number('confidence', row) !== null;
}

/** The points of lines, bars and bins. */
export function points(c: Context, rows: number[]): Point[] {
  const t = c.table,
    value = c.chart.mark === 'bar' ? c.chart.x.field : c.chart.y.field,
    x = xOf(c);
  const all = rows.flatMap((row) => {
    const v = t.number(value, row);
    if (v === null || !isOnAxis(c, row)) return [];
    const series = c.series.of(row);
    const line = [series, t.text('model', row)];
    const branch = c.chart.x.field === 'depth' && t.text('branch', row) !== '';
    if (branch) line.push('in a branch');
    if (t !== c.scores)
      line.push(...['data', 'layer', 'parameter', 'factor'].map((f) => t.text(f, row)));
    return [
      {
        id: row,
        series,
        line: line.join(', '),
        x: x(row),
        x2: c.chart.x.end ? t.number(c.chart.x.end, row) : null,
        value: v,
        low: t.number('low', row),
        high: t.number('high', row),
        null: t.number('null', row),
        branch,
        fires: t.text('fires', row) === 'yes',
      },
    ];
  });
  if (c.series.crowded) {
    const last = (p: Point) => Number(p.series === c.series.highlight);
    all.sort((a, b) => last(a) - last(b));
  }
  return c.chart.x.field === 'parameter'
    ? all.sort((a, b) => byNumber(String(a.x), String(b.x)))
    : all;
}

/** Rows in the order of the study: the means over values come where their transformation stands. */
export function inOrder(t: Table, rows: number[]): number[] {
  const place = new Map(t.values('transform').map((name, i) => [name, i]));
  const at = (row: number) => place.get(t.text('transform', row)) ?? 0;
  return rows
    .map((row, i) => ({ row, i }))
    .sort((a, b) => at(a.row) - at(b.row) || a.i - b.i)
    .map(({ row }) => row);
}

function xOf(c: Context): (row: number) => number | string {
  const t = c.table;
  if (c.chart.mark === 'bar') return (row) => lineOfBars(c, row);
  const { field } = axisX(c);
  if (field === 'parameter') return (row) => parameter(t.text(field, row));
  return (row) => t.number(field, row) ?? 0;
}

/** The place of the chosen layer on the axis of a chart over depth; '' where rows lack the layer. */
export function layerPlace(c: Context, rows: number[]): string {
  const at = c.layer();
  const row =
    at &&
    rows.find(
      (r) => c.table.text('layer', r) === at.layer && c.table.text('model', r) === at.model,
    );
  return row === undefined ? '' : String(xOf(c)(row));
}

/** Whether depth is relative: where it is chosen, or where models differ in depth. */
export function isRelative(c: Pick<Context, 'chart' | 'choice'>): boolean {
  const chosen = c.choice('x');
  return chosen === '' ? Boolean(c.chart.relativeFirst) : chosen === 'relative';
}

/** The horizontal axis: that of relative depth, or of absolute depth. */
export function axisX(c: Context) {
  return (isRelative(c) && c.chart.relative) || c.chart.x;
}

// lineOfBars is the name of a line of bars. That of a transformation includes the value of the
// parameter, except if the row is a mean over values.
function lineOfBars(c: Context, row: number): string {
  const { down } = sides(c)!;
  const value =
    down === 'transform' && c.series.dimension !== 'parameter' && c.choice('parameter') === ''
      ? c.table.text('parameter', row)
      : '';
  return [named(c, down, c.table.text(down, row)), value].filter(Boolean).join(' ');
}

/** Whether points are joined by lines. They are not if most depths have several layers. */
export function isJoined(points: Point[]): boolean {
  return points.length < 2 * new Set(points.map((p) => `${p.line}\0${p.x}`)).size;
}

/** A value of a field as a reader sees it. */
export function named(c: Pick<Context, 'scores'>, field: Field, value: string, most = 1000): string {
  return shorten(labelOf(c.scores, field, value), most);
}
