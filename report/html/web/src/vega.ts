// How charts get onto the page, and what all of them have in common.

import embed, { type Result, type VisualizationSpec } from 'vega-embed';
import { expressionInterpreter } from 'vega-interpreter';
import type { Statistic } from './data';
import type { Series } from './series';
import { tooltip, type Describe } from './tooltip';

export type Spec = VisualizationSpec;

/** The view of a drawn chart, which can be written as SVG. */
export type View = Result['view'];

/**
 * valueAxis spans 0 to 1 where that is the statistic's range, so that charts compare at a glance;
 * else it includes 0.
 */
export function valueAxis(statistic: Statistic, field = 'value') {
  const unit = isUnit(statistic);
  return {
    field,
    type: 'quantitative',
    title: null,
    scale: unit ? { domain: [0, 1], nice: false } : { zero: true },
    axis: {
      tickCount: 5,
      format: unit ? '.1f' : undefined,
      domain: false,
      ticks: false,
      labelPadding: 6,
      labelFlush: false,
    },
  };
}

export function isUnit(statistic: Statistic): boolean {
  return statistic.range[0] === 0 && statistic.range[1] === 1;
}

/** Encodings by series: what is drawn of one looks the same in every chart. */
export function colour(series: Series) {
  return {
    field: 'series',
    type: 'nominal',
    legend: null,
    scale: { domain: series.values, range: series.values.map((v) => series.look(v).colour) },
  };
}

export function shape(series: Series) {
  return {
    field: 'series',
    type: 'nominal',
    legend: null,
    scale: { domain: series.values, range: series.values.map((v) => series.look(v).shape) },
  };
}

export function dash(series: Series) {
  return {
    field: 'series',
    type: 'nominal',
    legend: null,
    scale: { domain: series.values, range: series.values.map((v) => series.look(v).dash) },
  };
}

/** Points carry the number of what the tooltip describes. */
export const tip = { field: 'id', type: 'nominal' };

const font = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

// The colours are variables of the style sheet, so a chart follows light, dark and print without
// being drawn again.
const axis = {
  labelColor: 'var(--muted)',
  titleColor: 'var(--muted)',
  gridColor: 'var(--grid)',
  domainColor: 'var(--line)',
  tickColor: 'var(--line)',
  labelFontSize: 12,
  titleFontSize: 12,
  titleFontWeight: 'normal' as const,
  titlePadding: 8,
  labelFont: font,
  titleFont: font,
};

/**
 * Draws a chart into an element, with the expressions interpreted: the page's policy forbids code
 * made at run time.
 */
export async function draw(
  into: HTMLElement,
  spec: Spec,
  description: string,
  describe: Describe,
): Promise<View> {
  const result = await embed(into, { ...spec, description } as Spec, {
    mode: 'vega-lite',
    renderer: 'svg',
    ast: true,
    expr: expressionInterpreter,
    actions: false,
    defaultStyle: false,
    tooltip: tooltip(describe),
    config: {
      background: 'transparent',
      font,
      view: { stroke: null },
      mark: { aria: false }, // the data beneath a chart read better aloud than thousands of marks
      axis,
      legend: {
        labelColor: 'var(--muted)',
        titleColor: 'var(--muted)',
        labelFontSize: 12,
        titleFontSize: 12,
        titleFontWeight: 'normal',
      },
    } as never,
  });
  return result.view;
}
