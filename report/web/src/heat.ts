// Heat maps: layers against layers, a tile for each pair.

import type { VisualizationSpec } from 'vega-embed';
import type { Scores, Statistic } from './data';
import { shorten } from './format';

/** A tile of a heat map. The texts are those of its tooltip. */
export interface Tile {
  layer: string;
  depth: number;
  other: string;
  otherDepth: number; // -1 where it is not known
  value: number | null;
  said: string; // value and interval
  chance: string;
}

/** Whether some layer of the rows is compared with several others. */
export function isGrid(scores: Scores, rows: number[]): boolean {
  const partner = new Map<string, string>();
  return rows.some((row) => {
    const layer = scores.text('layer', row), other = scores.text('other', row);
    if (other === '') return false;
    const first = partner.get(layer);
    partner.set(layer, first ?? other);
    return first !== undefined && first !== other;
  });
}

const tileSide = { min: 5, max: 26 };
const plotSide = 340;

/**
 * Layers of the first model from bottom to top, of the second from left to right, both by depth. Axes show depths, since
 * names of layers are too long for them; the tooltip has the names.
 */
export function heat(tiles: Tile[], statistic: Statistic): VisualizationSpec {
  const drawn = tiles.filter((t) => t.value !== null).map((t) => ({
    ...t,
    y: key(t.depth, t.layer),
    x: key(t.otherDepth, t.other),
    from: shorten(t.layer, 60),
    to: shorten(t.other, 60),
  }));
  const ys = [...new Set(drawn.map((t) => t.y))], xs = [...new Set(drawn.map((t) => t.x))].sort(byDepth);
  const unit = statistic.range[1] === 1 && drawn.every((t) => t.value! >= 0); // debiased statistics may fall below 0
  const axis = { labelExpr: "split(datum.label, ' ')[0]", labelOverlap: true, labelAngle: 0, domain: false, ticks: false, labelPadding: 5 };
  return {
    data: { values: drawn },
    width: 'container',
    height: side(ys.length),
    autosize: { type: 'fit-x', contains: 'padding' },
    mark: { type: 'rect', tooltip: true },
    encoding: {
      x: { field: 'x', type: 'ordinal', sort: xs, title: 'depth of the second layer', axis, scale: { padding: 0 } },
      y: { field: 'y', type: 'ordinal', sort: [...ys].sort(byDepth).reverse(), title: 'depth of the first layer', axis, scale: { padding: 0 } },
      color: {
        field: 'value', type: 'quantitative', title: null,
        scale: { scheme: 'viridis', ...(unit ? { domain: [0, 1] } : { nice: false, zero: false }) },
        legend: { gradientLength: Math.min(160, side(ys.length)), gradientThickness: 10, offset: 10, tickCount: 5, format: unit ? '.1f' : undefined },
      },
      tooltip: [
        { field: 'from', title: 'layer', type: 'nominal' },
        { field: 'to', title: 'with', type: 'nominal' },
        { field: 'said', title: statistic.name, type: 'nominal' },
        { field: 'chance', title: 'null', type: 'nominal' },
      ],
    },
  } as unknown as VisualizationSpec;
}

// key tells layers of the same depth apart; what stands before the blank is shown.
function key(depth: number, name: string): string {
  return `${depth < 0 ? '·' : depth} ${name}`;
}

function byDepth(a: string, b: string): number {
  return (Number.parseInt(a) || 0) - (Number.parseInt(b) || 0);
}

function side(tiles: number): number {
  return Math.max(60, Math.min(tiles * tileSide.max, Math.max(plotSide, tiles * tileSide.min)));
}
