// What a chart shows: the rows of its table that the reader has chosen. The fields that the chart's
// description (Chart in data.ts) names divide them into panels, which are charts side by side, and
// series, which differ in colour. In this file a row is the number of a row.

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
  choice: (name: string) => string; // the option chosen in a control of the chart; '' where none is
  chosenValue: (transform: string) => string; // the value of the parameter that the reader has chosen; '' if none
  layer: () => Chosen | undefined; // the layer that the reader has chosen
}

/** A chart of some of the rows, beside the charts of others. */
export interface Panel {
  title: string;
  rows: number[];
}

export interface Point {
  id: number; // its row
  series: string;
  line: string; // points with the same text are joined by a line
  x: number | string;
  x2: number | null; // for bins of histograms: the right edge
  value: number;
  low: number | null;
  high: number | null;
  null: number | null; // what chance alone gives
  branch: boolean; // of a layer inside a residual branch
  fires: boolean; // of tuning curves: the unit fires: its activation reaches its threshold
}

/** Fields that the reader fixes to one value, unless the axes or series of a chart show them. */
export const fixed = ['data', 'variant', 'parameter', 'factor', 'layer'] as const;
export type Fixed = (typeof fixed)[number];

/** The choices of a layer by its depth, for models whose layers have different names. */
export const layerEnds = { '': 'the deepest', first: 'the shallowest' };

/** Fills in placeholders, such as {layer}, in a text of the chart's description for some rows. */
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

/**
 * The fields among which the reader can choose: pairs for the vertical (down) and the horizontal
 * (across) axis of tiles, or single ones, each value of which has a line of bars.
 */
export function sidesOffered(c: Omit<Context, 'series'>): Sides[] {
  const several = (f: Field) => c.table.varies(f, c.rows);
  return (c.chart.sides ?? []).filter((s) =>
    s.across
      ? several(s.down) && several(s.across)
      : several(s.down) ||
        (s.down === 'transform' && c.rows.some((row) => c.table.text('transform', row) !== '')),
  );
}

/** The name of the control in which the reader chooses sides. */
export const sidesKey = (chart: Chart) => (chart.mark === 'bar' ? 'lines' : 'map');

/** The option of this control for some sides. */
export function sidesName({ down, across }: Sides): string {
  return across ? `${down}-${across}` : down;
}

/**
 * The sides of bars and tiles: those chosen, else the first offered. Where only one tile is left,
 * none is offered: it has the first sides of the chart.
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

/** The values to which a field can be fixed; for factors, those of the chosen data set. */
export function offered(c: Context, name: Fixed, shown: Set<Field>): string[] {
  let { rows } = c;
  if (name === 'factor' && !shown.has('data')) {
    const data = settled(c, 'data', shown);
    rows = rows.filter((row) => c.table.text('data', row) === data);
  }
  return c.table.distinct(name, rows);
}

/** Whether each factor that probes predict has its own panel until the reader chooses one. */
export function sideBySide(c: Context): boolean {
  return c.table === c.scores && Boolean(c.measure.probes);
}

/**
 * The value to which a field is fixed. For a parameter or a layer it is the reader's choice, '' if
 * there is none. For other fields it is the choice if it is offered; else '' (for a factor: all
 * samples) if a row has it, or if factors have panels side by side; else the first value.
 */
export function settled(c: Context, name: Fixed, shown: Set<Field>): string {
  const asked = c.choice(name);
  if (name === 'parameter' || name === 'layer') return asked;
  const values = offered(c, name, shown);
  if (values.includes(asked)) return asked;
  return values.includes('') || (name === 'factor' && sideBySide(c)) ? '' : (values[0] ?? '');
}

// parameterOf returns the transformation and the value of the choice, TRANSFORM=VALUE. Where only
// one transformation has values, the choice is the value alone, and the transformation is ''.
function parameterOf(c: Context): [string, string] {
  const asked = c.choice('parameter'),
    at = asked.lastIndexOf('=');
  return at < 0 ? ['', asked] : [asked.slice(0, at), asked.slice(at + 1)];
}

/** The transformations whose parameter has values. */
export function listed(c: Context): string[] {
  const rows = c.rows.filter((row) => c.table.text('parameter', row) !== '');
  return c.table.distinct('transform', rows);
}

// chosen returns the rows with the chosen value of each field that the chart does not show; without
// a value of the parameter, the means over values, or in tables without means all rows.
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

// atLayer returns the rows of one layer of each model: that of the chosen name, the shallowest
// ('first') or the deepest (''). Of several layers of the same depth, in parallel branches, the
// shallowest is the first in order and the deepest the last.
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

// untransformed returns the rows; if the statistic is the same under every transformation, only
// those of the first transformation of each model and data set.
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
 * The panels of a chart: one for each combination of model, transformation, value of the parameter
 * and factor of probes, as far as neither the series nor the axes tell these apart.
 */
export function panels(c: Context): Panel[] {
  const t = c.table,
    shown = shownBy(c),
    rows = inOrder(t, untransformed(c, chosen(c, shown)));
  // What the title of a panel can leave out.
  const noModel =
    c.series.dimension.startsWith('tag:') ||
    ['model', 'reference', 'compared'].some((f) => shown.has(f)) ||
    !t.varies('model', c.rows);
  const noTransform = shown.has('transform'),
    noValue = shown.has('parameter') || (noTransform && t === c.scores),
    noFactor = !sideBySide(c) || shown.has('factor');
  const factor = shown.has('factor') ? '' : settled(c, 'factor', shown);
  const label = (row: number) =>
    [
      noModel ? '' : t.text('model', row),
      [noFactor ? '' : t.text('factor', row), noTransform ? '' : t.text('transform', row)]
        .filter(Boolean)
        .join(' under '),
      noValue ? '' : t.text('parameter', row),
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

// isOnAxis reports whether a row has a position on the axis: some rows have no confidence.
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
  // With more series than colours, the highlighted one is drawn last, above the grey others.
  if (c.series.crowded) {
    const last = (p: Point) => Number(p.series === c.series.highlight);
    all.sort((a, b) => last(a) - last(b));
  }
  return c.chart.x.field === 'parameter'
    ? all.sort((a, b) => byNumber(String(a.x), String(b.x)))
    : all;
}

/** Rows sorted by the order of their transformations in the study, and otherwise as they are. */
export function inOrder(t: Table, rows: number[]): number[] {
  const place = new Map(t.values('transform').map((name, i) => [name, i]));
  const at = (row: number) => place.get(t.text('transform', row)) ?? 0;
  return rows
    .map((row, i) => ({ row, i }))
    .sort((a, b) => at(a.row) - at(b.row) || a.i - b.i)
    .map(({ row }) => row);
}

// xOf returns the function that gives the position of a row: on the horizontal axis, or for bars
// the name of the line.
function xOf(c: Context): (row: number) => number | string {
  const t = c.table;
  if (c.chart.mark === 'bar') return (row) => lineOfBars(c, row);
  const { field } = axisX(c);
  if (field === 'parameter') return (row) => parameter(t.text(field, row));
  return (row) => t.number(field, row) ?? 0;
}

/** The position of the chosen layer on an axis of depth; '' where the rows lack the layer. */
export function layerPlace(c: Context, rows: number[]): string {
  const at = c.layer();
  const row =
    at &&
    rows.find(
      (r) => c.table.text('layer', r) === at.layer && c.table.text('model', r) === at.model,
    );
  return row === undefined ? '' : String(xOf(c)(row));
}

/** Whether depth is relative: as the reader chose, else as the chart's description says. */
export function isRelative(c: Pick<Context, 'chart' | 'choice'>): boolean {
  const chosen = c.choice('x');
  return chosen === '' ? Boolean(c.chart.relativeFirst) : chosen === 'relative';
}

/** The horizontal axis: that of relative depth, or of absolute depth. */
export function axisX(c: Context) {
  return (isRelative(c) && c.chart.relative) || c.chart.x;
}

// lineOfBars is the name of the line of bars in which a row is drawn. That of a transformation
// includes the value of the parameter, except if the row is a mean over values.
function lineOfBars(c: Context, row: number): string {
  const { down } = sides(c)!;
  const value =
    down === 'transform' && c.series.dimension !== 'parameter' && c.choice('parameter') === ''
      ? c.table.text('parameter', row)
      : '';
  return [named(c, down, c.table.text(down, row)), value].filter(Boolean).join(' ');
}

/** Whether lines join points: not if a line has on average two points or more at an x. */
export function isJoined(points: Point[]): boolean {
  return points.length < 2 * new Set(points.map((p) => `${p.line}\0${p.x}`)).size;
}

/** A value of a field as a reader sees it. */
export function named(c: Pick<Context, 'scores'>, field: Field, value: string, most = 1000): string {
  return shorten(labelOf(c.scores, field, value), most);
}
