// Bars side by side: models under each transformation, on each data set or for each class or
// factor.

import { grouped, type Measure, type Scores } from '../data';
import { capital } from '../format';
import { joined, nothing, ofExtremes, reading } from '../sentences';
import { dimensionTitle, type Dimension } from '../series';
import { colour, isUnit, shape, tip, valueAxis, type Spec } from '../vega';
import {
  chosen,
  named,
  panelsBy,
  points,
  varies,
  type Axis,
  type Context,
  type Kind,
  type Point,
} from './kind';

/**
 * What the lines of bars can be; of what probes read, models or layers come first, and factors and
 * transformations have panels.
 */
const lines: Axis[] = ['transform', 'factor', 'data', 'variant', 'parameter', 'model', 'layer'];
const linesOfProbes: Axis[] = [
  'model',
  'layer',
  'factor',
  'transform',
  'data',
  'variant',
  'parameter',
];

export const bars: Kind = {
  name: 'bars',
  title: 'Bars',
  legend: 'null',
  suits: (_scores, _measure, rows) => rows.length > 0,
  by: ['model', 'transform', 'parameter', 'data', 'variant', 'factor'],
  spread: (c) => [line(c)],
  panels: (c) => {
    const along = line(c),
      panels = panelsBy(c, chosen(c, [along]), [along]);
    const domain =
      c.measure.probes && panels.length > 1
        ? common(
            c,
            panels.flatMap(([, rows]) => rows),
          )
        : undefined;
    return panels.map(([title, rows]) => ({
      title:
        c.measure.probes && title !== ''
          ? title
          : [capital(c.statistic.title), title, `by ${dimensionTitle(along as Dimension)}`]
              .filter(Boolean)
              .join(' '),
      rows,
      wide: !c.measure.probes || panels.length === 1,
      build: () => {
        const drawn = points(c, rows, (row) => labelled(c, along, row));
        return {
          spec: drawn.length > 0 ? sideBySide(c, drawn, domain) : undefined,
          text: textOf(c, drawn),
        };
      },
    }));
  },
};

function textOf(c: Context, drawn: Point[]): string {
  const has = [
    ...(drawn.some((p) => p.low !== null) ? ['interval'] : []),
    ...(drawn.some((p) => p.null !== null) ? ['null'] : []),
  ];
  return joined(
    reading(c, 'bars', has),
    drawn.length === 0
      ? nothing
      : ofExtremes(
          c,
          drawn.map((p) => p.id),
        ),
  );
}

// common is an axis for panels that are to be compared; none for numbers without an upper bound,
// whose units may differ from factor to factor.
function common(c: Context, rows: number[]): [number, number] | undefined {
  if (c.statistic.range[1] === null) return undefined;
  const ends = rows.flatMap((row) =>
    (['value', 'low', 'high', 'null'] as const).map((name) => c.scores.number(name, row) ?? 0),
  );
  return [Math.min(0, ...ends), Math.max(0, ...ends)];
}

/** The columns that a reader can choose for the lines. */
export function linesOf(scores: Scores, measure: Measure, rows: number[]): Axis[] {
  return (measure.probes ? linesOfProbes : lines).filter(
    (a) =>
      (a === 'layer' && !measure.layered ? false : varies(scores, a, rows)) ||
      (a === 'transform' && rows.some((row) => scores.text('transform', row) !== '')),
  );
}

function line(c: Omit<Context, 'series'>): Axis {
  const offered = linesOf(c.scores, c.measure, c.rows);
  const asked = offered.find((a) => a === c.choice('lines'));
  return asked ?? offered[0] ?? 'transform';
}

// labelled is the name of a line: of a transformation with its value, where no mean stands for the
// values.
function labelled(c: Context, along: Axis, row: number): string {
  const text = c.scores.text(along, row);
  const value =
    along === 'transform' && c.series.dimension !== 'parameter' && c.choice('parameter') === ''
      ? c.scores.text('parameter', row)
      : '';
  return [named(along, text), value].filter(Boolean).join(' ');
}

const most = 120; // bars of one picture; more are cut

function sideBySide(c: Context, all: Point[], domain?: [number, number]): Spec {
  const kept = new Set(
    grouped(all, (p) => String(p.x))
      .slice(0, most)
      .map(([x]) => x),
  );
  const drawn = all.filter((p) => kept.has(String(p.x)));
  const present = c.series.values.filter((v) => drawn.some((p) => p.series === v));
  const several =
    present.length > 1 && drawn.some((p) => named(c.series.dimension as Axis, p.series) !== p.x);
  const y = {
    field: 'x',
    type: 'nominal',
    sort: null,
    title: null,
    axis: { labelLimit: 140, domain: false, ticks: false, labelPadding: 8, labelFontSize: 13 },
  };
  const yOffset = several
    ? {
        field: 'series',
        type: 'nominal',
        sort: present,
        scale: { paddingOuter: 0.25, paddingInner: 0.15 },
      }
    : undefined;
  const axis = valueAxis(c.statistic);
  const x = {
    ...axis,
    title: c.statistic.title,
    ...(domain && !isUnit(c.statistic) && { scale: { domain, nice: true } }),
  };
  const base = { y, ...(yOffset && { yOffset }), color: colour(c.series) };
  const step = Math.max(10, Math.min(22, 48 / Math.max(1, present.length)));
  return {
    data: { values: drawn },
    width: 'container',
    height: (several ? step * (present.length + 0.5) : 26) * kept.size,
    autosize: { type: 'fit-x', contains: 'padding' },
    layer: [
      {
        mark: { type: 'bar', opacity: 0.32 },
        encoding: { ...base, x: { ...x, stack: null }, tooltip: tip },
      },
      ...(drawn.some((p) => p.null !== null)
        ? [
            {
              transform: [{ filter: 'isValid(datum.null)' }],
              mark: { type: 'tick', thickness: 2, opacity: 0.9, strokeDash: [2, 2] },
              encoding: { ...base, x: { ...x, field: 'null' }, tooltip: tip },
            },
          ]
        : []),
      ...(drawn.some((p) => p.low !== null)
        ? [
            {
              transform: [{ filter: 'isValid(datum.low) && isValid(datum.high)' }],
              mark: { type: 'rule', strokeWidth: 2 },
              encoding: { ...base, x: { ...x, field: 'low' }, x2: { field: 'high' }, tooltip: tip },
            },
          ]
        : []),
      {
        mark: { type: 'point', filled: true, opacity: 1, size: 60 },
        encoding: { ...base, x, shape: shape(c.series), tooltip: tip },
      },
    ],
  } as unknown as Spec;
}
