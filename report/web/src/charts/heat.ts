// Heat maps: layers by layers, models by models, factors by transformations; a tile for each pair.

import type { Measure, Scores } from '../data';
import { capital, number, shorten } from '../format';
import { saysOfHeat } from '../says';
import { byNumber } from '../series';
import { isUnit, tip, type Spec } from '../vega';
import { chosen, named, panelsBy, varies, type Axis, type Context, type Kind } from './kind';

/** The pairs of columns that can span a heat map: what goes down, what goes across. */
const pairs: [Axis, Axis][] = [
  ['layer', 'other'], ['from', 'to'], ['factor', 'transform'], ['layer', 'transform'], ['layer', 'parameter'], ['layer', 'model'], ['factor', 'layer'],
  ['model', 'transform'], ['model', 'factor'], ['model', 'data'], ['data', 'transform'], ['variant', 'transform'], ['factor', 'parameter'], ['model', 'parameter'],
];

export const heat: Kind = {
  name: 'heat',
  title: 'Heat map',
  legend: 'none',
  suits: (scores, measure, rows) => pairsOf(scores, measure, rows).length > 0,
  by: ['model'],
  spread: (c) => pairOf(c),
  panels: (c) => {
    const pair = pairOf(c);
    return panelsBy(c, chosen(c, pair), pair)
      .flatMap(([title, rows]) => split(c, pair, title, rows))
      .map(([title, rows]) => ({ title: title || capital(`${titles[pair[0]]} by ${titles[pair[1]]}`), rows, build: () => tiles(c, pair, rows) }));
  },
};

const titles: Record<Axis, string> = {
  layer: 'layer', other: 'layer', from: 'model', to: 'other model', model: 'model', transform: 'transformation', parameter: 'value of the parameter', factor: 'factor',
  data: 'data', variant: 'variant',
};

// split gives each model a heat map of its own, unless models are on an axis.
function split(c: Context, pair: Axis[], title: string, rows: number[]): [string, number[]][] {
  if (pair.includes('model') || pair.includes('from')) return [[title, rows]];
  const models = c.scores.distinct('model', rows);
  return models.map((m) => [models.length > 1 || c.scores.distinct('model', c.rows).length > 1 ? [m, title].filter(Boolean).join(', ') : title,
    rows.filter((row) => c.scores.text('model', row) === m)]);
}

/** The heat maps that rows can make, by name and title. */
export function pairsOf(scores: Scores, measure: Measure, rows: number[]): { name: string; title: string; pair: [Axis, Axis] }[] {
  return pairs.filter(([down, across]) => {
    if (across === 'other') return isGrid(scores, rows);
    if (across === 'to') return varies(scores, 'to', rows) && varies(scores, 'from', rows) && rows.every((row) => scores.text('to', row) !== '');
    if (!measure.layered && (down === 'layer' || across === 'layer')) return false;
    return varies(scores, down, rows) && varies(scores, across, rows);
  }).map((pair) => ({ name: pair.join('-'), title: `${titles[pair[0]]} by ${titles[pair[1]]}`, pair }));
}

function pairOf(c: Omit<Context, 'series'>): [Axis, Axis] {
  const offered = pairsOf(c.scores, c.measure, c.rows);
  const found = offered.find((p) => p.name === c.choice('map')) ?? offered[0];
  return found?.pair ?? [c.measure.layered ? 'layer' : 'model', 'transform']; // filters, or the statistic, may leave one tile
}

/** Whether some layer of the rows is compared with several others. */
export function isGrid(scores: Scores, rows: number[]): boolean {
  const partner = new Map<string, string>();
  return rows.some((row) => {
    const other = scores.text('other', row);
    if (other === '') return false;
    const layer = scores.text('layer', row), first = partner.get(layer);
    partner.set(layer, first ?? other);
    return first !== undefined && first !== other;
  });
}

const tileSide = { min: 5, max: 40 };
const plotSide = 340;
const writtenUpTo = 8; // tiles along a side in which numbers fit

// tiles draws rows of pairs. Layers lie in order of depth, the first at the bottom as in a network's picture; their axes show depths,
// since names of layers are too long for them, and the tooltip has the names.
function tiles(c: Context, [down, across]: [Axis, Axis], rows: number[]): { spec?: Spec; says: string } {
  const s = c.scores;
  const key = (axis: Axis, row: number) => {
    if (axis !== 'layer' && axis !== 'other') return named(axis, s.text(axis, row));
    const depth = s.number(axis === 'layer' ? 'depth' : 'otherDepth', row) ?? -1;
    return `${depth < 0 ? '·' : depth} ${s.text(axis, row)}`; // tells layers of the same depth apart; what stands before the blank is shown
  };
  const drawn = rows.filter((row) => s.number('value', row) !== null).map((row) => ({
    id: row, y: key(down, row), x: key(across, row), value: s.number('value', row)!, text: number(s.number('value', row)),
  }));
  const values = drawn.map((t) => t.value), low = Math.min(...values), high = Math.max(...values);
  const unit = isUnit(c.statistic) || (c.statistic.range[1] === 1 && low >= 0); // debiased statistics may fall below 0
  const signed = !unit && low < 0 && high > 0;
  const says = saysOfHeat(c, drawn, (row) => [down, across].map((a) => shorten(named(a, s.text(a, row)), 40)), signed);
  if (drawn.length === 0) return { says };
  const ys = sorted(down, drawn.map((t) => t.y)), xs = sorted(across, drawn.map((t) => t.x));
  if (down === 'layer') ys.reverse();
  const color = {
    field: 'value', type: 'quantitative', title: null,
    scale: signed ? { scheme: 'blueorange', domainMid: 0 } : { scheme: 'viridis', ...(unit ? { domain: [0, 1] } : { nice: false, zero: false }) },
    legend: { gradientLength: Math.max(60, Math.min(160, side(ys.length))), gradientThickness: 10, offset: 10, tickCount: 5, format: unit ? '.1f' : undefined },
  };
  const encoding = { x: axisOf('x', across, xs), y: axisOf('y', down, ys) };
  const written = xs.length <= writtenUpTo && ys.length <= 2 * writtenUpTo;
  const middle = unit ? 0.45 : low + 0.45 * (high - low); // above it black is read better than white
  return {
    spec: {
      data: { values: drawn },
      width: 'container',
      height: side(ys.length),
      autosize: { type: 'fit-x', contains: 'padding' },
      layer: [
        { mark: { type: 'rect' }, encoding: { ...encoding, color, tooltip: tip } },
        ...(written ? [{
          mark: { type: 'text', fontSize: 11 },
          encoding: {
            ...encoding, text: { field: 'text', type: 'nominal' }, tooltip: tip,
            color: signed ? { value: '#111' } : { condition: { test: `datum.value > ${middle}`, value: '#111' }, value: '#fff' },
          },
        }] : []),
      ],
    } as unknown as Spec,
    says,
  };
}

function axisOf(channel: string, axis: Axis, sort: string[]) {
  const layers = axis === 'layer' || axis === 'other';
  const title = layers ? `depth of the ${axis === 'other' ? 'second' : ''} layer`.replace('  ', ' ') : titles[axis];
  return {
    field: channel, type: 'ordinal', sort, title, scale: { padding: 0 },
    axis: {
      ...(layers && { labelExpr: "split(datum.label, ' ')[0]" }), labelOverlap: layers, labelLimit: 120, labelAngle: !layers && channel === 'x' && sort.length > 4 ? -40 : 0,
      domain: false, ticks: false, labelPadding: 5,
    },
  };
}

function sorted(axis: Axis, keys: string[]): string[] {
  const distinct = [...new Set(keys)];
  if (axis === 'layer' || axis === 'other') return distinct.sort((a, b) => (Number.parseInt(a) || 0) - (Number.parseInt(b) || 0));
  return axis === 'parameter' ? distinct.sort(byNumber) : distinct;
}

function side(tiles: number): number {
  return Math.max(60, Math.min(tiles * tileSide.max, Math.max(plotSide, tiles * tileSide.min)));
}
