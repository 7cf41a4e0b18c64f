// Heat maps: layers by layers, models by models, factors by transformations; a tile for each pair.
// A side of a map is a column of the scores, or a factor with a transformation against the parts of
// that one's range: what a probe for the first makes of the second (Figure 8 of Plachouras et al.
// 2025).

import type { Measure, Scores } from '../data';
import { capital, number } from '../format';
import { joined, nothing, ofExtremes, reading } from '../sentences';
import { byNumber } from '../series';
import { isUnit, tip, type Spec } from '../vega';
import { chosen, named, panelsBy, varies, type Axis, type Context, type Kind } from './kind';

type Side = Axis | 'pair' | 'part';

/** What can span a heat map: what goes down, what goes across. */
const pairs: [Side, Side][] = [
  ['pair', 'part'],
  ['layer', 'other'],
  ['from', 'to'],
  ['factor', 'transform'],
  ['layer', 'transform'],
  ['layer', 'parameter'],
  ['layer', 'model'],
  ['factor', 'layer'],
  ['model', 'transform'],
  ['model', 'factor'],
  ['model', 'data'],
  ['data', 'transform'],
  ['variant', 'transform'],
  ['factor', 'parameter'],
  ['model', 'parameter'],
];

export const heat: Kind = {
  name: 'heat',
  title: 'Heat map',
  legend: 'none',
  suits: (scores, measure, rows) => pairsOf(scores, measure, rows).length > 0,
  by: ['model'],
  spread: (c) => columnsOf(pairOf(c)),
  panels: (c) => {
    const pair = pairOf(c),
      columns = columnsOf(pair),
      all = chosen(c, columns);
    const furthest = Math.max(...all.map((row) => Math.abs(c.scores.number('value', row) ?? 0)));
    return panelsBy(c, all, columns)
      .flatMap(([title, rows]) => split(c, pair, title, rows))
      .map(([title, rows]) => ({
        title: title || capital(`${titles[pair[0]]} by ${titles[pair[1]]}`),
        rows,
        build: () => tiles(c, pair, rows, furthest),
      }));
  },
};

/** The heat map that is chosen, by its name. */
export function mapOf(c: Omit<Context, 'series'>): string {
  return pairOf(c).join('-');
}

// columnsOf are the columns that the sides of a map spread out.
function columnsOf(pair: [Side, Side]): Axis[] {
  return pair[0] === 'pair' ? ['factor', 'transform', 'parameter'] : (pair as Axis[]);
}

const titles: Record<Side, string> = {
  layer: 'layer',
  other: 'layer',
  from: 'model',
  to: 'other model',
  model: 'model',
  transform: 'transformation',
  parameter: 'value of the parameter',
  factor: 'factor',
  data: 'data',
  variant: 'variant',
  pair: 'factor under transformation',
  part: 'part of the range',
};

// split gives each model a heat map of its own, unless models are on an axis.
function split(c: Context, pair: Side[], title: string, rows: number[]): [string, number[]][] {
  if (pair.includes('model') || pair.includes('from')) return [[title, rows]];
  const models = c.scores.distinct('model', rows);
  return models.map((m) => [
    models.length > 1 || c.scores.distinct('model', c.rows).length > 1
      ? [m, title].filter(Boolean).join(', ')
      : title,
    rows.filter((row) => c.scores.text('model', row) === m),
  ]);
}

/** The heat maps that rows can make, by name and title. */
export function pairsOf(
  scores: Scores,
  measure: Measure,
  rows: number[],
): { name: string; title: string; pair: [Side, Side] }[] {
  return pairs
    .filter(([down, across]) => {
      if (down === 'pair' || across === 'part') return isInParts(scores, measure, rows);
      if (across === 'other') return isGrid(scores, rows);
      if (across === 'to')
        return (
          varies(scores, 'to', rows) &&
          varies(scores, 'from', rows) &&
          rows.every((row) => scores.text('to', row) !== '')
        );
      if (!measure.layered && (down === 'layer' || across === 'layer')) return false;
      return varies(scores, down as Axis, rows) && varies(scores, across as Axis, rows);
    })
    .map((pair) => ({
      name: pair.join('-'),
      title: `${titles[pair[0]]} by ${titles[pair[1]]}`,
      pair,
    }));
}

// isInParts reports whether factors stand beside each other under transformations, in parts of their
// ranges.
function isInParts(scores: Scores, measure: Measure, rows: number[]): boolean {
  const parts = rows.filter(
    (row) => scores.text('parameter', row) !== '' && scores.text('factor', row) !== '',
  );
  return (
    Boolean(measure.probes) &&
    varies(scores, 'parameter', parts) &&
    (varies(scores, 'factor', parts) || varies(scores, 'transform', parts))
  );
}

function pairOf(c: Omit<Context, 'series'>): [Side, Side] {
  const offered = pairsOf(c.scores, c.measure, c.rows);
  const found = offered.find((p) => p.name === c.choice('map')) ?? offered[0];
  // filters, or the statistic, may leave one tile
  return found?.pair ?? [c.measure.layered ? 'layer' : 'model', 'transform'];
}

/** Whether some layer of the rows is compared with several others. */
export function isGrid(scores: Scores, rows: number[]): boolean {
  const partner = new Map<string, string>();
  return rows.some((row) => {
    const other = scores.text('other', row);
    if (other === '') return false;
    const layer = scores.text('layer', row),
      first = partner.get(layer);
    partner.set(layer, first ?? other);
    return first !== undefined && first !== other;
  });
}

const tileSide = { min: 5, max: 40 };
const plotSide = 340;
const pairSide = 34; // a tile beside a name of two lines
const writtenUpTo = 8; // tiles along a side in which numbers fit

// partsOf numbers the parts of a transformation's range, the lowest first; four have the signs that
// the paper gives them.
function partsOf(c: Context): (row: number) => string {
  const s = c.scores,
    parts = new Map<string, string[]>();
  for (const row of c.rows) {
    const transform = s.text('transform', row),
      parameter = s.text('parameter', row),
      known = parts.get(transform) ?? [];
    if (parameter !== '' && !known.includes(parameter)) parts.set(transform, [...known, parameter]);
  }
  for (const known of parts.values()) known.sort(byNumber);
  return (row) => {
    const known = parts.get(s.text('transform', row)) ?? [],
      place = known.indexOf(s.text('parameter', row));
    return known.length === quarters.length ? quarters[place] : String(place + 1);
  };
}

const quarters = ['– –', '–', '+', '+ +'];

// tiles draws rows of pairs. Layers lie in order of depth, the first at the bottom as in a
// network's picture; their axes show depths, since names of layers are too long for them, and the
// tooltip has the names. Colours on both sides of 0 reach as far in every map: furthest.
function tiles(
  c: Context,
  [down, across]: [Side, Side],
  rows: number[],
  furthest: number,
): { spec?: Spec; text: string } {
  const s = c.scores,
    part = across === 'part' ? partsOf(c) : () => '';
  const key = (axis: Side, row: number) => {
    if (axis === 'part') return part(row);
    if (axis === 'pair')
      return `${named('factor', s.text('factor', row))}\nunder ${s.text('transform', row)}`;
    if (axis !== 'layer' && axis !== 'other') return named(axis, s.text(axis, row));
    const depth = s.number(axis === 'layer' ? 'depth' : 'otherDepth', row) ?? -1;
    // The name tells layers of the same depth apart. The axis shows what is before the blank.
    return `${depth < 0 ? '·' : depth} ${s.text(axis, row)}`;
  };
  const drawn = rows
    .filter((row) => s.number('value', row) !== null)
    .map((row) => ({
      id: row,
      y: key(down, row),
      x: key(across, row),
      value: s.number('value', row)!,
      label: number(s.number('value', row)),
    }));
  const values = drawn.map((t) => t.value),
    low = Math.min(...values),
    high = Math.max(...values);
  // debiased statistics may fall below 0
  const unit = isUnit(c.statistic) || (c.statistic.range[1] === 1 && low >= 0);
  const signed = !unit && low < 0 && high > 0;
  const text = joined(
    reading(c, 'heat', [signed ? 'signed' : 'unsigned']),
    drawn.length === 0
      ? nothing
      : ofExtremes(
          c,
          drawn.map((t) => t.id),
        ),
  );
  if (drawn.length === 0) return { text };
  const ys = sorted(
      down,
      drawn.map((t) => t.y),
    ),
    xs = sorted(
      across,
      drawn.map((t) => t.x),
    );
  if (down === 'layer') ys.reverse();
  const height = down === 'pair' ? pairSide * ys.length : side(ys.length);
  const color = {
    field: 'value',
    type: 'quantitative',
    title: null,
    scale: signed
      ? { scheme: 'blueorange', domain: [-furthest, furthest] }
      : { scheme: 'viridis', ...(unit ? { domain: [0, 1] } : { nice: false, zero: false }) },
    legend: {
      gradientLength: Math.max(60, Math.min(160, height)),
      gradientThickness: 10,
      offset: 10,
      tickCount: 5,
      format: unit ? '.1f' : undefined,
    },
  };
  const encoding = { x: axisOf('x', across, xs), y: axisOf('y', down, ys) };
  const written = xs.length <= writtenUpTo && ys.length <= 2 * writtenUpTo;
  // above it black is read better than white
  const middle = unit ? 0.45 : low + 0.45 * (high - low);
  return {
    spec: {
      data: { values: drawn },
      width: 'container',
      height,
      autosize: { type: 'fit-x', contains: 'padding' },
      layer: [
        { mark: { type: 'rect' }, encoding: { ...encoding, color, tooltip: tip } },
        ...(written
          ? [
              {
                mark: { type: 'text', fontSize: 11 },
                encoding: {
                  ...encoding,
                  text: { field: 'label', type: 'nominal' },
                  tooltip: tip,
                  color: signed
                    ? {
                        condition: { test: `abs(datum.value) > ${0.75 * furthest}`, value: '#fff' },
                        value: '#111',
                      }
                    : {
                        condition: { test: `datum.value > ${middle}`, value: '#111' },
                        value: '#fff',
                      },
                },
              },
            ]
          : []),
      ],
    } as unknown as Spec,
    text,
  };
}

function axisOf(channel: string, axis: Side, sort: string[]) {
  const layers = axis === 'layer' || axis === 'other';
  const title =
    axis === 'pair'
      ? null
      : layers
        ? `depth of the ${axis === 'other' ? 'second' : ''} layer`.replace('  ', ' ')
        : titles[axis];
  return {
    field: channel,
    type: 'ordinal',
    sort,
    title,
    scale: { padding: 0 },
    axis: {
      ...(layers && { labelExpr: "split(datum.label, ' ')[0]" }),
      ...(axis === 'pair' && { labelExpr: "split(datum.label, '\\n')", labelOffset: -6 }),
      labelOverlap: layers,
      labelLimit: axis === 'pair' ? 140 : 120,
      labelAngle: !layers && axis !== 'part' && channel === 'x' && sort.length > 4 ? -40 : 0,
      domain: false,
      ticks: false,
      labelPadding: 5,
    },
  };
}

function sorted(axis: Side, keys: string[]): string[] {
  const distinct = [...new Set(keys)];
  if (axis === 'layer' || axis === 'other')
    return distinct.sort((a, b) => (Number.parseInt(a) || 0) - (Number.parseInt(b) || 0));
  if (axis === 'part')
    return distinct.sort((a, b) => quarters.indexOf(a) - quarters.indexOf(b) || byNumber(a, b));
  return axis === 'parameter' ? distinct.sort(byNumber) : distinct;
}

function side(tiles: number): number {
  return Math.max(60, Math.min(tiles * tileSide.max, Math.max(plotSide, tiles * tileSide.min)));
}
