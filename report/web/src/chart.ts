// Charts: from points to Vega-Lite specifications, and those onto the page.

import embed, { type VisualizationSpec } from 'vega-embed';
import { expressionInterpreter } from 'vega-interpreter';
import { Direction, type Statistic } from './data';
import { look } from './palette';
import { tooltip } from './tooltip';

/** A point of a chart. The texts are those of its tooltip. */
export interface Point {
  model: string;
  x: number | string; // depth, or value of the parameter
  row: string; // line of a dot chart: the transformation
  value: number | null;
  low: number | null;
  high: number | null;
  null: number | null;
  place: string; // what the tooltip calls it
  said: string; // value and interval
  chance: string;
}

const bandsUpTo = 6; // series; more intervals than this hide each other

type Layer = Record<string, unknown>;

/**
 * Curves against depth or a parameter: a line for each model, its interval as a band, its null as a dotted line. Where
 * higher is more invariant the null is a floor, shaded.
 */
export function curves(points: Point[], models: string[], statistic: Statistic, xTitle: string): VisualizationSpec {
  const drawn = points.filter((p) => p.value !== null);
  const numeric = drawn.every((p) => typeof p.x === 'number');
  const x = {
    field: 'x',
    type: numeric ? 'quantitative' : 'ordinal',
    title: xTitle,
    sort: null,
    scale: numeric ? { nice: false, zero: false, padding: 10 } : undefined,
    axis: { grid: false, ...ticks(drawn), labelAngle: 0, labelOverlap: true, labelFlush: false },
  };
  const y = valueAxis(statistic);
  const few = new Set(drawn.map((p) => p.model)).size <= bandsUpTo;
  const layers: Layer[] = [];
  if (few && statistic.direction === Direction.higher && drawn.some((p) => p.null !== null)) {
    layers.push({
      transform: [{ filter: 'isValid(datum.null)' }],
      mark: { type: 'area', opacity: 0.08 },
      encoding: { x, y: { ...y, field: 'null', stack: null }, y2: { datum: Math.max(0, statistic.range[0] ?? 0) }, color: colour(models) },
    });
  }
  if (drawn.some((p) => p.null !== null)) {
    layers.push({
      transform: [{ filter: 'isValid(datum.null)' }],
      mark: { type: 'line', strokeWidth: 1.5, strokeDash: [1, 3], strokeCap: 'round' },
      encoding: { x, y: { ...y, field: 'null' }, color: colour(models) },
    });
  }
  if (few && drawn.some((p) => p.low !== null)) {
    layers.push({
      transform: [{ filter: 'isValid(datum.low) && isValid(datum.high)' }],
      mark: { type: 'area', opacity: 0.2 },
      encoding: { x, y: { ...y, field: 'low', stack: null }, y2: { field: 'high' }, color: colour(models) },
    });
  }
  layers.push(
    { mark: { type: 'line', strokeWidth: 2, strokeJoin: 'round' }, encoding: { x, y, color: colour(models), strokeDash: dash(models) } },
    {
      params: [{ name: 'near', select: { type: 'point', nearest: true, on: 'pointerover', clear: 'pointerout' } }],
      mark: { type: 'point', filled: true, opacity: 1 },
      encoding: {
        x, y, color: colour(models), shape: shape(models), tooltip: said(statistic),
        size: { condition: { param: 'near', empty: false, value: 110 }, value: drawn.length > 400 ? 8 : 28 },
      },
    },
  );
  return { data: { values: drawn }, width: 'container', height: 230, autosize: { type: 'fit-x', contains: 'padding' }, layer: layers } as unknown as VisualizationSpec;
}

/** Dots with intervals: a line for each transformation with a dot for each model, or a line for each model where nothing is moved. */
export function dots(points: Point[], models: string[], statistic: Statistic): VisualizationSpec {
  const drawn = points.filter((p) => p.value !== null);
  const present = models.filter((m) => drawn.some((p) => p.model === m));
  const y = { field: 'row', type: 'nominal', sort: null, title: null, axis: { labelLimit: 140, domain: false, ticks: false, labelPadding: 8, labelFontSize: 13 } };
  const several = drawn.some((p) => p.row !== p.model);
  const yOffset = several ? { field: 'model', type: 'nominal', sort: present, scale: { paddingOuter: 0.6 } } : undefined;
  const x = { ...valueAxis(statistic), title: statistic.title };
  const base = { y, ...(yOffset && { yOffset }), color: colour(models) };
  const step = Math.max(9, Math.min(20, 44 / Math.max(1, present.length)));
  return {
    data: { values: drawn },
    width: 'container',
    height: (several ? step * (present.length + 1) : 22) * new Set(drawn.map((p) => p.row)).size,
    autosize: { type: 'fit-x', contains: 'padding' },
    layer: [
      ...(drawn.some((p) => p.low !== null) ? [{
        transform: [{ filter: 'isValid(datum.low) && isValid(datum.high)' }],
        mark: { type: 'rule', strokeWidth: 2, opacity: 0.55 },
        encoding: { ...base, x: { ...x, field: 'low' }, x2: { field: 'high' } },
      }] : []),
      ...(drawn.some((p) => p.null !== null) ? [{
        transform: [{ filter: 'isValid(datum.null)' }],
        mark: { type: 'tick', thickness: 2, opacity: 0.8 },
        encoding: { ...base, x: { ...x, field: 'null' } },
      }] : []),
      { mark: { type: 'point', filled: true, opacity: 1, size: 75 }, encoding: { ...base, x, shape: shape(models), tooltip: said(statistic) } },
    ],
  } as unknown as VisualizationSpec;
}

// ticks are at the values themselves where those are few, as those of a parameter are.
function ticks(points: Point[]) {
  const values = [...new Set(points.map((p) => p.x))];
  return values.length <= 8 ? { values } : { tickCount: 6, tickMinStep: 1 };
}

// valueAxis spans 0 to 1 where that is the statistic's range, so that charts compare at a glance; else it includes 0.
function valueAxis(statistic: Statistic) {
  const unit = statistic.range[0] === 0 && statistic.range[1] === 1;
  return {
    field: 'value',
    type: 'quantitative',
    title: null,
    scale: unit ? { domain: [0, 1], nice: false } : { zero: true },
    axis: { tickCount: 5, format: unit ? '.1f' : undefined, domain: false, ticks: false, labelPadding: 6, labelFlush: false },
  };
}

function colour(models: string[]) {
  return { field: 'model', type: 'nominal', legend: null, scale: { domain: models, range: models.map((_, i) => look(i).colour) } };
}

function shape(models: string[]) {
  return { field: 'model', type: 'nominal', legend: null, scale: { domain: models, range: models.map((_, i) => look(i).shape) } };
}

function dash(models: string[]) {
  return { field: 'model', type: 'nominal', legend: null, scale: { domain: models, range: models.map((_, i) => look(i).dash) } };
}

function said(statistic: Statistic) {
  return [
    { field: 'model', title: 'model', type: 'nominal' },
    { field: 'place', title: 'at', type: 'nominal' },
    { field: 'said', title: statistic.name, type: 'nominal' },
    { field: 'chance', title: 'null', type: 'nominal' },
  ];
}

// The colours are variables of the style sheet, so a chart follows light, dark and print without being drawn again.
const axis = {
  labelColor: 'var(--muted)', titleColor: 'var(--muted)', gridColor: 'var(--grid)', domainColor: 'var(--line)', tickColor: 'var(--line)',
  labelFontSize: 12, titleFontSize: 12, titleFontWeight: 'normal' as const, titlePadding: 8,
};

/** Draws a chart into an element, with the expressions interpreted: the page's policy forbids code made at run time. */
export async function draw(into: HTMLElement, spec: VisualizationSpec, description: string): Promise<void> {
  await embed(into, { ...spec, description } as VisualizationSpec, {
    mode: 'vega-lite',
    renderer: 'svg',
    ast: true,
    expr: expressionInterpreter,
    actions: false,
    defaultStyle: false,
    tooltip,
    config: {
      background: 'transparent',
      font: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif',
      view: { stroke: null },
      axis,
      legend: { labelColor: 'var(--muted)', labelFontSize: 12 },
    } as never,
  });
}
