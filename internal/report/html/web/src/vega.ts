// Draws Vega-Lite specifications, with the settings that all charts share.

import embed, { type Result, type VisualizationSpec } from 'vega-embed';
import { expressionInterpreter } from 'vega-interpreter';
import { tooltip, type Describe } from './tooltip';

export type Spec = VisualizationSpec;

/** The view of a drawn chart, which can be written as SVG. */
export type View = Result['view'];

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

/** Calls chosen with the row of the mark that the reader clicks, or of the nearest point. */
export function onRow(view: View, chosen: (row: number) => void): void {
  view.addEventListener('click', (_event, item) => {
    // The id of a datum is its row. In charts that select the nearest point, the clicked item is a
    // cell of their Voronoi diagram, whose datum is the mark of the point.
    const datum = item?.datum as { id?: number; datum?: { id?: number } } | undefined;
    const row = datum?.datum?.id ?? datum?.id;
    if (typeof row === 'number') chosen(row);
  });
}

/**
 * Draws a chart into an element. Vega interprets expressions instead of compiling them, since the
 * page's content security policy forbids code made at run time.
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
      // Screen readers read the table beneath the chart, not each of thousands of marks.
      mark: { aria: false },
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
