// Curves: a statistic against the depth of the layer or the value of the transformation's
// parameter.

import { capital } from '../format';
import { byNumber, parameter } from '../series';
import { joined, nothing, ofCurves, reading } from '../sentences';
import { colour, dash, shape, tip, valueAxis, type Spec } from '../vega';
import { isGrid } from './heat';
import {
  chosen,
  isJoined,
  panelsBy,
  points,
  varies,
  type Context,
  type Kind,
  type Panel,
  type Point,
} from './kind';

const bandsUpTo = 6; // lines; more intervals than this hide each other

/** Curves over depth: where in a network does it happen? */
export const depth: Kind = {
  name: 'depth',
  title: 'Over depth',
  legend: 'null',
  suits: (scores, measure, rows) =>
    measure.layered && !isGrid(scores, rows) && varies(scores, 'layer', rows),
  by: ['model', 'transform', 'parameter', 'data', 'variant', 'factor'],
  spread: () => ['layer'],
  panels: (c) => {
    const relative = c.choice('x') === 'relative';
    const x = relative
      ? (row: number) => c.scores.relativeDepth(row)
      : (row: number) => c.scores.number('depth', row) ?? 0;
    return panelsBy(c, chosen(c, ['layer']), ['layer']).map(([title, rows]) =>
      panel(
        c,
        title,
        rows,
        x,
        relative ? 'depth, as a share of the deepest layer’s' : 'depth of the layer',
        relative,
      ),
    );
  },
};

/** Curves against the parameter: how far may the input be moved? */
export const byParameter: Kind = {
  name: 'parameter',
  title: 'By parameter',
  legend: 'null',
  suits: (scores, _measure, rows) =>
    rows.some((row) => scores.text('parameter', row) !== '') &&
    new Set(rows.map((row) => scores.text('parameter', row)).filter(Boolean)).size > 1,
  by: ['model', 'data', 'variant', 'factor'],
  spread: () => ['parameter'],
  panels: (c) => {
    const x = (row: number) => parameter(c.scores.text('parameter', row));
    return panelsBy(c, chosen(c, ['parameter']), ['parameter'])
      .filter(([, rows]) => new Set(rows.map(x)).size > 1)
      .map(([title, rows]) =>
        panel(
          c,
          title,
          rows.sort((a, b) => byNumber(String(x(a)), String(x(b)))),
          x,
          'value of the parameter',
          false,
        ),
      );
  },
};

function panel(
  c: Context,
  title: string,
  rows: number[],
  x: (row: number) => number | string,
  xTitle: string,
  relative: boolean,
): Panel {
  return {
    title: title || capital(c.statistic.title),
    rows,
    build: () => {
      const drawn = points(c, rows, x);
      return {
        spec: drawn.length > 0 ? curves(c, drawn, xTitle, relative) : undefined,
        text: textOf(c, drawn),
      };
    },
  };
}

function textOf(c: Context, drawn: Point[]): string {
  const has = [isJoined(drawn) ? 'lines' : 'points'];
  if (drawn.some((p) => p.null !== null)) has.push('null');
  if (new Set(drawn.map((p) => p.line)).size <= bandsUpTo && drawn.some((p) => p.low !== null))
    has.push('interval');
  return joined(
    reading(c, 'depth', has),
    drawn.length === 0
      ? nothing
      : ofCurves(
          c,
          drawn.map((p) => p.id),
        ),
  );
}

/**
 * A line for each series, its interval as a band, its null as a dotted line. Where higher is more
 * invariant the null is a floor, shaded.
 */
function curves(c: Context, drawn: Point[], xTitle: string, relative: boolean): Spec {
  const numeric = drawn.every((p) => typeof p.x === 'number');
  const x = {
    field: 'x',
    type: numeric ? 'quantitative' : 'ordinal',
    title: xTitle,
    sort: null,
    scale: numeric
      ? { nice: false, zero: false, padding: 10, ...(relative && { domain: [0, 1] }) }
      : undefined,
    axis: {
      grid: false,
      ...(relative ? { tickCount: 5, format: '.0%' } : ticks(drawn)),
      labelAngle: 0,
      labelOverlap: true,
      labelFlush: false,
    },
  };
  const y = valueAxis(c.statistic);
  const lines = new Set(drawn.map((p) => p.line)).size,
    joined = isJoined(drawn),
    few = joined && lines <= bandsUpTo;
  const color = colour(c.series),
    detail = { field: 'line', type: 'nominal' };
  const layers: Record<string, unknown>[] = [];
  if (drawn.some((p) => p.null !== null)) {
    if (few && c.statistic.direction === 'higher') {
      layers.push({
        transform: [{ filter: 'isValid(datum.null)' }],
        mark: { type: 'area', opacity: Math.max(0.03, 0.14 / lines) },
        encoding: {
          x,
          y: { ...y, field: 'null', stack: null },
          y2: { datum: Math.max(0, c.statistic.range[0] ?? 0) },
          color,
          detail,
        },
      });
    }
    layers.push({
      transform: [{ filter: 'isValid(datum.null)' }],
      mark: joined
        ? { type: 'line', strokeWidth: 1.5, strokeDash: [1, 3], strokeCap: 'round' }
        : { type: 'tick', orient: 'horizontal', size: 10, opacity: 0.6 },
      encoding: { x, y: { ...y, field: 'null' }, color, detail },
    });
  }
  if (few && drawn.some((p) => p.low !== null)) {
    layers.push({
      transform: [{ filter: 'isValid(datum.low) && isValid(datum.high)' }],
      mark: { type: 'area', opacity: 0.2 },
      encoding: { x, y: { ...y, field: 'low', stack: null }, y2: { field: 'high' }, color, detail },
    });
  }
  layers.push(
    ...(joined
      ? [
          {
            mark: { type: 'line', strokeWidth: 2, strokeJoin: 'round' },
            encoding: { x, y, color, detail, strokeDash: dash(c.series) },
          },
        ]
      : []),
    {
      params: [
        {
          name: 'near',
          select: { type: 'point', nearest: true, on: 'pointerover', clear: 'pointerout' },
        },
      ],
      mark: { type: 'point', filled: true, opacity: 1 },
      encoding: {
        x,
        y,
        color,
        shape: shape(c.series),
        tooltip: tip,
        size: {
          condition: { param: 'near', empty: false, value: 110 },
          value: drawn.length > 400 ? 8 : 28,
        },
      },
    },
  );
  return {
    data: { values: drawn },
    width: 'container',
    height: 230,
    autosize: { type: 'fit-x', contains: 'padding' },
    layer: layers,
  } as unknown as Spec;
}

// ticks are at the values themselves where those are few, as those of a parameter are.
function ticks(points: Point[]) {
  const values = [...new Set(points.map((p) => p.x))];
  return values.length <= 8
    ? { values, format: values.every((v) => typeof v === 'number') ? '.6~g' : undefined }
    : { tickCount: 6 };
}
