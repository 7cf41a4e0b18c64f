// Swatches of series for legends. The report's data hold the Look of each series.

import type { Look } from './data';
import { node } from './dom';

/** The colour index of all but the highlighted series, where there are more series than colours. */
export const grey = -1;

export function colourOf(look: Look): string {
  return look.colour === grey ? 'var(--control)' : `var(--series-${look.colour})`;
}

/** A short piece of the series' line with its marker, for a legend. */
export function swatch(look: Look): SVGElement {
  const line = {
    stroke: colourOf(look),
    'stroke-width': 2,
    'stroke-dasharray': look.dashes[1] ? look.dashes.join(' ') : 'none',
  };
  return node(
    'svg',
    { width: 30, height: 12, viewBox: '0 0 30 12', 'aria-hidden': 'true' },
    node('line', { x1: 1, x2: 29, y1: 6, y2: 6, ...line }),
    node('path', { d: outlines[look.marker], transform: 'translate(15 6)', fill: colourOf(look) }),
  );
}

// The outlines of the markers, as SVG paths around the origin.
const outlines: Record<string, string> = {
  circle: 'M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z',
  square: 'M-3.5 -3.5H3.5V3.5H-3.5Z',
  'triangle-up': 'M0 -4L4 3.5H-4Z',
  diamond: 'M0 -5L4 0L0 5L-4 0Z',
  'triangle-down': 'M0 4L4 -3.5H-4Z',
  cross: 'M-1.5 -4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5Z',
};
