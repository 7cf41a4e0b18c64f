// Charts as Vega-Lite specifications: one for each kind of mark.

import { axisX, fill, isJoined, layerPlace, named, points, sides, type Context, type Point } from './chart';
import type { Axis, ColourScale, Field, Scatter } from './data';
import { number, shorten } from './format';
import { colourOf } from './palette';
import { textOf, type Text } from './sentences';
import { byNumber, dimensionTitle, parameter, type Series } from './series';
import type { Spec } from './vega';

/** A panel as a specification, none where there is no number, and its sentences. */
export interface Drawing extends Text {
  spec?: Spec;
}

/** Draws a panel. Bars share a domain where their description says so. */
export function drawing(c: Context, rows: number[], domain?: [number, number]): Drawing {
  if (c.chart.mark === 'tile') return tiles(c, rows);
  const drawn = points(c, rows);
  const marks = { line: curves, bar: bars, step: steps }[c.chart.mark];
  const lines = new Set(drawn.map((p) => p.line)).size;
  const hasBands = c.chart.mark === 'bar' || lines <= bandsUpTo;
  // What the panel has, on which its sentences depend; see textOf.
  const has = [isJoined(drawn) ? 'lines' : 'points'];
  if (drawn.some((p) => p.branch)) has.push('branch');
  if (drawn.some((p) => p.null !== null)) has.push('null');
  if (hasBands && drawn.some((p) => p.low !== null)) has.push('interval');
  return {
    spec: drawn.length > 0 ? sized(marks(c, drawn, lines, domain)) : undefined,
    ...textOf(
      c,
      drawn.map((p) => p.id),
      has,
    ),
  };
}

const wideScreen = window.matchMedia('(min-width: 70rem)'); // as in style.css

/** Draws compact curves over relative depth, which the sentences of the first screen refer to. */
export function small(c: Context, rows: number[]): Spec {
  // The title up to its first comma: "relative depth".
  const short = (axis?: Axis) => axis && { ...axis, title: axis.title.split(',')[0] };
  const chart = { ...c.chart, relative: short(c.chart.relative) };
  const choice = (name: string) => (name === 'x' ? 'relative' : c.choice(name));
  const here = { ...c, chart, choice };
  const drawn = points(here, rows);
  const spec = curves(here, drawn, new Set(drawn.map((p) => p.line)).size);
  const compact = { labelFontSize: 11, titleFontSize: 11, titlePadding: 3, labelPadding: 3 };
  return sized({ ...spec, height: wideScreen.matches ? 112 : 96, config: { axis: compact, axisY: { tickCount: 3, titleLimit: 118 } } });
}

const bandsUpTo = 6; // number of lines up to which interval bands are drawn: more hide each other
const areasUpTo = 4; // number of histograms up to which the areas beneath are filled

// The encodings that most marks have: tip, the index of the row that the tooltip describes, and
// detail, the line to which a point belongs.
export const tip = { field: 'id', type: 'nominal' };
const detail = { field: 'line', type: 'nominal' };

/** Completes a specification: the width of its container, and a default height. */
export function sized(spec: Record<string, unknown>): Spec {
  const autosize = { type: 'fit-x', contains: 'padding' };
  return { width: 'container', height: 230, autosize, ...spec } as unknown as Spec;
}

/** Encodings of series by colour, marker and dashes, which are the same in every chart. */
function looks(series: Series, values = series.values, legend: object | null = null) {
  const by = (range: unknown[]) => ({
    field: 'series',
    type: 'nominal',
    legend,
    scale: { domain: values, range },
  });
  const all = values.map((_, i) => series.lookAt(i));
  return {
    color: by(all.map(colourOf)),
    shape: by(all.map((l) => l.marker)),
    dash: by(all.map((l) => l.dashes)),
  };
}

// valueAxis spans 0 to 1 if that is the statistic's range, so that charts can be compared.
// Otherwise it includes 0, unless Axis.free is set in the description of the chart.
function valueAxis(c: Context, rows: number[], domain?: [number, number]) {
  const axis = c.chart.mark === 'bar' ? c.chart.x : c.chart.y;
  const fromZeroToOne = axis.field === 'value' && !axis.free && rangesOverUnit(c);
  return {
    field: 'value',
    type: 'quantitative',
    title: withUnit(c, fill(c, axis.title, rows)) || null,
    scale: fromZeroToOne
      ? { domain: [0, 1], nice: false }
      : { zero: !axis.free, ...(domain && { domain, nice: true }) },
    axis: {
      tickCount: 5,
      format: axis.percent ? '.0%' : fromZeroToOne ? '.1f' : undefined,
      domain: false,
      ticks: false,
      labelPadding: 6,
      labelFlush: false,
    },
  };
}

// withUnit adds the unit of measurement of the statistic, such as dB, to its title.
function withUnit(c: Context, title: string): string {
  return title === c.statistic.title && c.statistic.unit ? `${title} (${c.statistic.unit})` : title;
}

// rangesOverUnit reports whether the range of the statistic is 0 to 1.
function rangesOverUnit(c: Context): boolean {
  return c.statistic.range[0] === 0 && c.statistic.range[1] === 1;
}

/** A line for each series, with its interval as a band and its null as a dotted line. */
function curves(c: Context, drawn: Point[], lines: number) {
  const own = c.chart.legend === 'chart'; // it has its own legend, rather than that of the page
  const axis = axisX(c),
    numeric = drawn.every((p) => typeof p.x === 'number'),
    xs = [...new Set(drawn.map((p) => p.x))];
  const x = {
    field: 'x',
    type: numeric ? 'quantitative' : 'ordinal',
    title: parameterTitle(c, drawn) || amountTitle(c, drawn) || axis.title,
    sort: null,
    scale: numeric
      ? { nice: false, zero: false, padding: 10, ...(axis.percent && { domain: [0, 1] }) }
      : undefined,
    axis: {
      grid: false,
      ...(axis.percent
        ? { tickCount: 5, format: '.0%' }
        : xs.length <= 8 // a tick at each value, such as those of a parameter
          ? { values: xs, format: numeric ? '.6~g' : undefined }
          : { tickCount: 6 }),
      labelAngle: 0,
      labelOverlap: true,
      labelFlush: false,
    },
  };
  const y = valueAxis(
    c,
    drawn.map((p) => p.id),
  );
  const present = own ? [...new Set(drawn.map((p) => p.series))] : undefined;
  const { color, shape, dash } = looks(
    c.series,
    present,
    own ? { orient: 'bottom', columns: 3, title: null } : null,
  );
  const joined = isJoined(drawn),
    few = joined && lines <= bandsUpTo;
  const branches = drawn.some((p) => p.branch);
  const valid = (...names: string[]) => [
    { filter: [...names.map((name) => `isValid(datum.${name})`), '!datum.branch'].join(' && ') },
  ];
  const layer: object[] = [];
  if (drawn.some((p) => p.null !== null)) {
    if (few && c.statistic.direction === 'higher')
      layer.push({
        transform: valid('null'),
        mark: { type: 'area', opacity: Math.max(0.03, 0.14 / lines) },
        encoding: {
          x,
          y: { ...y, field: 'null', stack: null },
          y2: { datum: Math.max(0, c.statistic.range[0] ?? 0) },
          color,
          detail,
        },
      });
    layer.push({
      transform: valid('null'),
      mark: joined
        ? { type: 'line', strokeWidth: 1.5, strokeDash: [1, 3], strokeCap: 'round' }
        : { type: 'tick', orient: 'horizontal', size: 10, opacity: 0.6 },
      encoding: { x, y: { ...y, field: 'null' }, color, detail },
    });
  }
  if (few && drawn.some((p) => p.low !== null))
    layer.push({
      transform: valid('low', 'high'),
      mark: { type: 'area', opacity: 0.2 },
      encoding: { x, y: { ...y, field: 'low', stack: null }, y2: { field: 'high' }, color, detail },
    });
  if (joined)
    layer.push({
      mark: { type: 'line', strokeWidth: 2, strokeJoin: 'round' },
      encoding: {
        x,
        y,
        color,
        detail,
        strokeDash: dash,
        ...(branches && {
          opacity: { condition: { test: 'datum.branch', value: 0.4 }, value: 1 },
          strokeWidth: { condition: { test: 'datum.branch', value: 1 }, value: 2 },
        }),
      },
    });
  layer.push({
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
      shape,
      tooltip: tip,
      size: {
        condition: [
          { param: 'near', empty: false, value: 110 },
          { test: 'datum.fires', value: 40 },
          { test: 'datum.branch', value: 6 },
        ],
        value: drawn.length > 400 || c.table.has('fires') ? 8 : 28,
      },
    },
  });
  if (isMarked(c))
    layer.push({
      data: {
        name: marker,
        values: markerOf(
          markedAt(
            c,
            drawn.map((p) => p.id),
          ),
          drawn[0].x,
        ),
      },
      mark: { type: 'rule', strokeWidth: 1.5, color: 'var(--text)' },
      encoding: {
        x: { field: 'x', type: x.type },
        opacity: { condition: { test: 'datum.on', value: 0.6 }, value: 0 },
      },
    });
  return { data: { values: drawn }, layer };
}

/** Whether a chart has a marker: a vertical line at the chosen value of a parameter or layer. */
export function isMarked(c: Context): boolean {
  return c.chart.mark === 'line' && ['parameter', 'depth'].includes(c.chart.x.field);
}

/** What the reader has chosen on the x axis: a parameter's value, or a layer; '' for nothing. */
export function markedAt(c: Context, rows: number[]): string {
  return c.chart.x.field === 'parameter' ? c.chosenValue(transformOf(c, rows)) : layerPlace(c, rows);
}

/** The name of the Vega data set of one row that holds the place of the marker of a chart. */
export const marker = 'marker';

/** The row of the marker at a value; if the value is '', it is invisible, at the place hidden. */
export const markerOf = (value: string, hidden: number | string = 0) => [
  value === '' ? { x: hidden, on: false } : { x: parameter(value), on: true },
];

// transformOf returns the transformation of some rows; '' if there are several.
function transformOf(c: Context, rows: number[]): string {
  const names = c.table.distinct('transform', rows);
  return names.length === 1 ? names[0] : '';
}

// parameterTitle returns the title of the parameter of the transformation of a chart over
// parameters.
function parameterTitle(c: Context, drawn: Point[]): string {
  const names = new Set(drawn.map((p) => c.table.text('transform', p.id)));
  if (c.chart.x.field !== 'parameter' || names.size !== 1) return '';
  const [name] = names;
  return c.scores.packed.transforms[name] || `value of ${name}`;
}

// amountTitle returns the title of the horizontal axis of tuning curves: the parameter or the
// factor that varies along the trajectory.
function amountTitle(c: Context, drawn: Point[]): string {
  if (c.chart.x.field !== 'amount') return '';
  const name = (field: string) => {
    const names = new Set(drawn.map((p) => c.table.text(field, p.id)));
    return names.size === 1 ? [...names][0] : '';
  };
  const transform = name('transform'),
    factor = name('factor');
  if (transform) return c.scores.packed.transforms[transform] || `step of ${transform}`;
  return factor && `change of ${factor}`;
}

/** Histograms as step lines; if there are few, the areas beneath are filled. */
function steps(c: Context, drawn: Point[], lines: number) {
  const values = drawn.flatMap((p, i) =>
    drawn[i + 1]?.line === p.line ? [p] : [p, { ...p, x: p.x2 }],
  );
  const rows = drawn.map((p) => p.id);
  const x = {
    field: 'x',
    type: 'quantitative',
    title: fill(c, c.chart.x.title, rows),
    scale: { nice: false, zero: false },
    axis: { grid: false, tickCount: 6 },
  };
  const y = { ...valueAxis(c, rows), stack: null };
  const { color, dash } = looks(c.series);
  const area = {
    mark: { type: 'area', interpolate: 'step-after', opacity: 0.16 },
    encoding: { x, y, color, detail },
  };
  return {
    data: { values },
    height: 200,
    layer: [
      ...(lines <= areasUpTo ? [area] : []),
      {
        mark: { type: 'line', interpolate: 'step-after', strokeWidth: 1.8 },
        encoding: { x, y, color, detail, strokeDash: dash },
      },
      {
        mark: { type: 'rect', opacity: 0 },
        encoding: { x, x2: { field: 'x2' }, y, y2: { datum: 0 }, detail, tooltip: tip },
      },
    ],
  };
}

const barsUpTo = 120; // rows of bars in one panel; further ones are left out

/** Bars side by side, with their intervals as lines and a tick at the null, the score by chance. */
function bars(c: Context, all: Point[], _lines: number, domain?: [number, number]) {
  const kept = new Set([...new Set(all.map((p) => p.x))].slice(0, barsUpTo));
  const drawn = all.filter((p) => kept.has(p.x));
  const present = c.series.values.filter((v) => drawn.some((p) => p.series === v));
  const several =
    present.length > 1 && drawn.some((p) => named(c, c.series.dimension, p.series) !== p.x);
  const y = {
    field: 'x',
    type: 'nominal',
    sort: null,
    title: dimensionTitle(c.scores, sides(c)!.down),
    axis: { labelLimit: 140, domain: false, ticks: false, labelPadding: 8, labelFontSize: 13 },
  };
  const yOffset = {
    field: 'series',
    type: 'nominal',
    sort: present,
    scale: { paddingOuter: 0.25, paddingInner: 0.15 },
  };
  const x = valueAxis(
    c,
    drawn.map((p) => p.id),
    domain,
  );
  const { color, shape } = looks(c.series);
  const base = { y, ...(several && { yOffset }), color, tooltip: tip };
  const step = Math.max(10, Math.min(22, 48 / Math.max(1, present.length)));
  const layer: object[] = [
    { mark: { type: 'bar', opacity: 0.32 }, encoding: { ...base, x: { ...x, stack: null } } },
  ];
  if (drawn.some((p) => p.null !== null))
    layer.push({
      transform: [{ filter: 'isValid(datum.null)' }],
      mark: { type: 'tick', thickness: 2, opacity: 0.9, strokeDash: [2, 2] },
      encoding: { ...base, x: { ...x, field: 'null' } },
    });
  if (drawn.some((p) => p.low !== null))
    layer.push({
      transform: [{ filter: 'isValid(datum.low) && isValid(datum.high)' }],
      mark: { type: 'rule', strokeWidth: 2 },
      encoding: { ...base, x: { ...x, field: 'low' }, x2: { field: 'high' } },
    });
  layer.push({
    mark: { type: 'point', filled: true, opacity: 1, size: 60 },
    encoding: { ...base, x, shape },
  });
  return {
    data: { values: drawn },
    height: (several ? step * (present.length + 0.5) : 26) * kept.size,
    layer,
  };
}

// In pixels: the side of a tile, the side of a plot, and the height of a tile beside a name of two
// lines, 'FACTOR under TRANSFORMATION' (the field pair).
const tileSide = { min: 5, max: 40 };
const plotSide = 340;
const pairSide = 34;
const writtenUpTo = 8; // number of tiles along a side up to which numbers fit in them

/**
 * Draws a heat map: a tile for each pair of values of two fields, or columns of tiles if the
 * vertical axis has numbers. Layers are in order of depth, the first at the bottom.
 */
function tiles(c: Context, rows: number[]): Drawing {
  const t = c.table,
    { down, across } = sides(c) ?? { down: '', across: c.chart.x.field },
    end = c.chart.y.end; // if the vertical axis has numbers, the field with the upper ends of tiles
  const drawn = rows
    .filter((row) => t.number('value', row) !== null)
    .map((row) => ({
      id: row,
      x: tileName(c, across!, row),
      y: end ? t.number(c.chart.y.field, row) : tileName(c, down, row),
      y2: end ? t.number(end, row) : null,
      value: t.number('value', row)!,
      label: number(t.number('value', row)),
    }));
  const scale = c.measure.colours[c.chart.table][c.statistic.name];
  const text = textOf(
    c,
    drawn.map((p) => p.id),
    [scale.signed ? 'signed' : 'unsigned'],
  );
  if (drawn.length === 0) return text;
  const order = (field: Field, of: (p: (typeof drawn)[number]) => unknown) =>
    ordered(c, field, [...new Set(drawn.map((p) => String(of(p))))]);
  const xs = order(across!, (p) => p.x),
    ys = end ? [] : order(down, (p) => p.y);
  if (down === 'layer') ys.reverse();
  const height = end ? 260 : down === 'pair' ? pairSide * ys.length : side(ys.length);
  const legend = {
    gradientLength: Math.max(60, Math.min(160, height)),
    gradientThickness: 10,
    offset: 10,
    tickCount: 5,
    format: scale.unit ? '.1f' : undefined,
  };
  const encoding = {
    x: tileAxis(c, 'x', across!, xs, end ? 0.06 : 0),
    ...(end
      ? {
          y: {
            field: 'y',
            type: 'quantitative',
            title: c.chart.y.title,
            scale: { nice: false, ...(c.chart.y.percent && { domain: [0, 1] }) },
            axis: {
              format: c.chart.y.percent ? '.0%' : undefined,
              tickCount: 4,
              grid: false,
              domain: false,
              ticks: false,
            },
          },
          y2: { field: 'y2' },
        }
      : { y: tileAxis(c, 'y', down, ys) }),
  };
  const written = !end && xs.length <= writtenUpTo && ys.length <= 2 * writtenUpTo;
  return { spec: heat(drawn, encoding, scale, height, legend, written), ...text };
}

/** Tiles in the colours of their values, with their labels if written is true. */
export function heat(
  drawn: { value: number; label: string }[],
  axes: object,
  { stops, colours, inks }: ColourScale,
  height: number,
  legend: object | null,
  written: boolean,
): Spec {
  const values = drawn.map((p) => {
    const at = (p.value - stops[0]) / (stops[stops.length - 1] - stops[0]);
    return { ...p, ink: inks[Math.max(0, Math.min(inks.length - 1, Math.round(at * (inks.length - 1))))] };
  });
  const encoding = { ...axes, tooltip: tip };
  const color = {
    field: 'value',
    type: 'quantitative',
    title: null,
    scale: { domain: stops, range: colours, clamp: true },
    legend,
  };
  const text = {
    mark: { type: 'text', fontSize: 11, color: { expr: 'datum.ink' } },
    encoding: { ...encoding, text: { field: 'label', type: 'nominal' } },
  };
  const layer = [{ mark: { type: 'rect' }, encoding: { ...encoding, color } }, ...(written ? [text] : [])];
  return sized({ data: { values }, height, layer });
}

// isLayer reports whether an axis shows layers, by their depths.
const isLayer = (field: Field) => field === 'layer' || field === 'other';

// tileName returns the key of a row on an axis. For layers it is the depth, a blank and the name,
// which distinguishes layers of the same depth; the axis shows the depth alone, or · if it is
// unknown.
function tileName(c: Context, field: Field, row: number): string {
  const text = c.table.text(field, row);
  if (!isLayer(field)) return named(c, field, text);
  const depth = c.table.number(field === 'layer' ? 'depth' : 'otherDepth', row) ?? -1;
  return `${depth < 0 ? '·' : depth} ${text}`;
}

function tileAxis(c: Context, channel: string, field: Field, sort: string[], padding = 0) {
  const layers = isLayer(field),
    { title } = c.scores.packed.fields[field];
  return {
    field: channel,
    type: 'ordinal',
    sort,
    title: field === 'pair' ? null : layers ? `depth of the ${title}` : title,
    scale: { padding },
    axis: {
      ...(layers && { labelExpr: "split(datum.label, ' ')[0]" }),
      ...(field === 'pair' && {
        labelExpr: "split(replace(datum.label, ' under ', '\\nunder '), '\\n')",
        labelOffset: -6,
      }),
      labelOverlap: layers,
      labelLimit: field === 'pair' ? 140 : 120,
      labelAngle: !layers && field !== 'part' && channel === 'x' && sort.length > 4 ? -40 : 0,
      domain: false,
      ticks: false,
      labelPadding: 5,
    },
  };
}

// ordered sorts the keys of an axis: layers by depth, values of a parameter by number, and parts of
// a range as the table lists them.
function ordered(c: Context, field: Field, keys: string[]): string[] {
  if (isLayer(field))
    return keys.sort((a, b) => (Number.parseInt(a) || 0) - (Number.parseInt(b) || 0));
  const order = c.table.table.order ?? [];
  if (field === 'part') return keys.sort((a, b) => order.indexOf(a) - order.indexOf(b));
  return field === 'parameter' ? keys.sort(byNumber) : keys;
}

function side(tiles: number): number {
  return Math.max(60, Math.min(tiles * tileSide.max, Math.max(plotSide, tiles * tileSide.min)));
}

/** Scores against accuracy, with the fitted line; group returns the series of a point's label. */
export function scatter(
  chart: Scatter,
  shown: Scatter['points'],
  series: Series,
  group: (label: string) => string,
): Spec {
  const x = {
    field: 'x',
    type: 'quantitative',
    title: chart.x,
    scale: { domain: [chart.left, chart.right], zero: false, nice: false },
    axis: { tickCount: 6, grid: false },
  };
  const places = chart.ticks?.map((t) => t.at), // of the logit scale
    labels = chart.ticks?.map((t) => t.label);
  const y = {
    field: 'at',
    type: 'quantitative',
    title: chart.y,
    scale: { domain: [chart.low, chart.high], nice: false, zero: false, clamp: true },
    axis: {
      values: chart.ticks && places,
      labelExpr: chart.ticks && `${JSON.stringify(labels)}[indexof(${JSON.stringify(places)}, datum.value)]`,
      domain: false,
      ticks: false,
    },
  };
  const line = chart.line ?? [],
    band = line.filter((p) => p.low < p.high);
  const grey = { color: 'var(--muted)' };
  const { color, shape } = looks(series);
  const fit = [
    {
      data: { values: band },
      mark: { type: 'area', opacity: 0.13, ...grey },
      encoding: { x, y: { ...y, field: 'low', stack: null }, y2: { field: 'high' } },
    },
    {
      data: { values: line },
      mark: { type: 'line', strokeWidth: 1.6, ...grey },
      encoding: { x, y },
    },
  ];
  const names = shown.length <= namesUpTo ? nameSides(chart, shown) : [];
  const values = shown.map((p, id) => ({ ...p, id, series: group(p.label), ...names[id] }));
  const errorBar = { type: 'rule', strokeWidth: 1.2, opacity: 0.45 };
  const layer = [
    ...fit.filter((l) => l.data.values.length > 0),
    {
      data: { values: values.filter((p) => p.left < p.right) },
      mark: errorBar,
      encoding: { x: { ...x, field: 'left' }, x2: { field: 'right' }, y, color },
    },
    {
      data: { values: values.filter((p) => p.low < p.high) },
      mark: errorBar,
      encoding: { x, y: { ...y, field: 'low' }, y2: { field: 'high' }, color },
    },
    ...[1, -1].map((side) => ({
      data: { values: values.filter((p) => p.side === side) },
      mark: {
        type: 'text',
        align: side > 0 ? 'left' : 'right',
        dx: 8 * side,
        dy: { expr: 'datum.shift' },
        fontSize: 11,
        color: 'var(--muted)',
      },
      encoding: { x, y, text: { field: 'name', type: 'nominal' } },
    })),
    {
      data: { values },
      mark: { type: 'point', filled: true, size: 75, opacity: 0.9 },
      encoding: { x, y, color, shape, tooltip: tip },
    },
  ];
  return sized({ height: 340, layer });
}

const namesUpTo = 15; // number of points up to which their names stand beside them

// nameSides places the name of each point on the side towards the middle of the chart, and shifts
// it up or down if names of near points are there.
function nameSides(chart: Scatter, shown: Scatter['points']) {
  const middle = (chart.left + chart.right) / 2;
  const across = (a: number, b: number) => Math.abs(a - b) / (chart.right - chart.left),
    up = (a: number, b: number) => Math.abs(a - b) / (chart.high - chart.low);
  const placed: { p: Scatter['points'][number]; side: number; shift: number }[] = [];
  return shown.map((p) => {
    const side = p.x > middle ? -1 : 1;
    const near = placed.filter(
      (q) => q.side === side && across(q.p.x, p.x) < 0.2 && up(q.p.at, p.at) < 0.05,
    );
    const shift = [0, -12, 12, -24, 24].find((s) => near.every((q) => q.shift !== s)) ?? 0;
    placed.push({ p, side, shift });
    return { side, shift, name: shorten(p.label, 24) };
  });
}
