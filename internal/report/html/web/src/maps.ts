// Feature maps f(x) of a sample x under a transformation T: f(x), f(T(x)), T of f(x), and the
// difference of the last two.

import { validOrFirst } from './chosenvalue';
import { Part } from './controls';
import type { MapSheet, Scores } from './data';
import { node } from './dom';
import { Figure } from './figure';
import type { Filter } from './filters';
import { number, shorten } from './format';
import { layerOf, onLayer } from './layer';
import type { Drawable } from './save';
import { labelOf } from './series';
import type { State } from './state';
import { tableOf, type Field } from './table';
import { tile } from './tiles';

const maxFigures = 6; // sheets of a transformation that are drawn; further ones are left out

export class FeatureMaps extends Part {
  protected readonly figuresIn = 'figures';
  private readonly sheets: MapSheet[];

  constructor(
    private readonly details: HTMLDetailsElement,
    scores: Scores,
    measure: string,
    state: State,
    filter: Filter,
  ) {
    super(details, scores, state, filter, measure, '');
    this.sheets = (scores.packed.maps ?? []).filter((s) => s.measure === measure);
    this.folds(details, ['maps']);
    onLayer(() => this.update());
  }

  update(): void {
    const shown = this.sheets.filter((s) =>
      this.filter.passes({ model: s.model, transform: s.transform, data: s.data }),
    );
    this.root.hidden = shown.length === 0;
    if (!this.details.open || shown.length === 0) return;
    const name = (s: MapSheet) => [s.transform, s.parameter].filter(Boolean).join(' ');
    const all = [...new Set(shown.map(name))];
    const selected = validOrFirst(all, this.asked('maps'));
    this.part('choices').replaceChildren(...this.list('maps', 'Transformation', all, selected));
    const drawn = shown.filter((s) => name(s) === selected).slice(0, maxFigures);
    this.show(drawn.map((s) => this.figure(s, selected)));
  }

  private figure(sheet: MapSheet, transform: string): Figure {
    const chosen = layerOf(this.state);
    const lines = linesOf(sheet),
      ofLayer = lines.filter((l) => chosen?.model === sheet.model && l.layer === chosen.layer),
      drawn = ofLayer.length > 0 ? ofLayer : lines;
    const title = `${sheet.model} under ${transform}`;
    const sample = sheet.name || String(sheet.sample);
    return new Figure({
      title,
      description: `Feature maps of ${title}`,
      build: () => ({
        show: (into) => {
          const svg = draw(this.scores, sheet, drawn, `Feature maps of ${sample}: ${title}`);
          into.append(svg);
          return saved(svg);
        },
        text: `Sample ${shorten(sample, 40)}. The channels are those that vary most over positions. Grey: from the least to the largest value of a channel; difference: blue for less, orange for more. Positions where T of f(x) is not defined are left blank.`,
      }),
      describe: () => [],
      data: () => tableOf(`Feature maps of ${title}`, drawn, fieldsOf(this.scores)),
    });
  }
}

/** A line of tiles, side by side: the maps of a channel. */
interface Line {
  at: number; // index of the line on the sheet
  layer: string;
  depth: number;
  size: string; // of the maps
  first: boolean; // the first line of its layer
  channel: number;
  error: number; // norm of the difference / norm of T of f(x)
  low: number; // the values drawn black and white
  high: number;
}

function linesOf(sheet: MapSheet): Line[] {
  let at = sheet.has_input ? 1 : 0; // line 0 of such a sheet shows x and T(x)
  return (sheet.layers ?? []).flatMap(({ layer, depth, height, width, channels }) =>
    channels.map((c, i) => ({
      at: at++,
      layer,
      depth,
      size: `${height} × ${width}`,
      first: i === 0,
      ...c,
    })),
  );
}

const headings = ['f(x)', 'f(T(x))', 'T of f(x)', 'difference'];
const gap = 4; // pixels between tiles
const labelWidth = 104; // pixels

function draw(scores: Scores, sheet: MapSheet, lines: Line[], about: string): SVGSVGElement {
  const { width: w, height: h } = sheet.tile!;
  const total = labelWidth + 4 * (w + gap);
  const svg = node('svg', { role: 'img', 'aria-label': about, 'font-family': 'system-ui, sans-serif' });
  const write = (text: string, x: number, y: number, more: Record<string, string> = {}) =>
    svg.append(node('text', { x, y, 'font-size': 11, fill: 'var(--muted)', ...more }, text));
  // Draws the tile at a line and a column of the sheet as the image number place from the left.
  const paint = (line: number, column: number, place: number, y: number) => {
    const x = labelWidth + place * (w + gap);
    const image = node('image', { x, y, width: w, height: h, 'image-rendering': 'pixelated' });
    svg.append(image);
    void tile(sheet, line, column).then((url) => image.setAttribute('href', url));
  };
  const centred = (place: number) => labelWidth + place * (w + gap) + w / 2;
  let y = 0;
  if (sheet.has_input) {
    ['x', 'T(x)'].forEach((text, i) => {
      write(text, centred(i), 11, { 'text-anchor': 'middle' });
      paint(0, i, i, 15);
    });
    y = 15 + h + 6;
  }
  headings.forEach((text, i) => write(text, centred(i), y + 11, { 'text-anchor': 'middle' }));
  y += 15;
  for (const line of lines) {
    if (line.first || lines.length <= 3) {
      const name = labelOf(scores, 'layer', line.layer);
      write(shorten(name, 17), 0, y + 11, { fill: 'var(--text)' });
      write(`depth ${line.depth}, ${line.size}`, 0, y + 25, { 'font-size': '10' });
    }
    write(`channel ${line.channel}`, 0, y + h - 16, { 'font-size': '10' });
    write(`error ${number(line.error)}`, 0, y + h - 4, { 'font-size': '10' });
    headings.forEach((_, i) => paint(line.at, i, i, y));
    y += h + gap;
  }
  for (const [name, value] of Object.entries({ width: total, height: y, viewBox: `0 0 ${total} ${y}` }))
    svg.setAttribute(name, String(value));
  return svg as SVGSVGElement;
}

const saved = (svg: SVGSVGElement): Drawable => ({
  finalize: () => {},
  toSVG: async () => new XMLSerializer().serializeToString(svg),
});

const fieldsOf = (scores: Scores): Field<Line>[] => [
  ['layer', (l) => labelOf(scores, 'layer', l.layer)],
  ['depth', (l) => l.depth, true],
  ['maps', (l) => l.size],
  ['channel', (l) => l.channel, true],
  ['least value', (l) => l.low],
  ['largest value', (l) => l.high],
  ['relative error', (l) => l.error],
];
