// The drawings of networks: their operations from the input to the output, in boxes. A box is a
// group of operations, such as a block, which can be unfolded into a box for each operation. Boxes
// are coloured by a statistic of their layers.

import { validOrFirst } from './chosenvalue';
import { Part } from './controls';
import { Shown, type ColourScale, type Measure, type NetworkGraph, type Scores, type Statistic } from './data';
import { element, node } from './dom';
import { Figure } from './figure';
import type { Filter } from './filters';
import { count, number, shorten } from './format';
import { chooseLayer, layerOf, onLayer } from './layer';
import { layout, type Edge, type Item } from './layout';
import type { Drawable } from './save';
import { describe } from './scoretable';
import { labelOf } from './series';
import type { State } from './state';
import { tableOf, type Field } from './table';
import { tooltip } from './tooltip';

const modelsAtOnce = 4; // drawn, unless the reader chooses one model

/** A statistic that can colour layers. */
interface Shade {
  measure: Measure;
  statistic: Statistic;
  rows: number[]; // indices of its scores
}

/** The section of the page with the networks of all models. */
export class Network extends Part {
  private drawings: Drawing[] = [];

  constructor(root: HTMLElement, scores: Scores, state: State, filter: Filter) {
    super(root, scores, state, filter, 'network');
    onLayer(() => {
      for (const d of this.drawings) d.select();
    });
  }

  update(): void {
    this.drawings = [];
    const all = (this.scores.packed.networks ?? []).filter((n) => this.filter.passes({ model: n.model }));
    const shades = this.shades();
    // The default is the statistic of the first curves on the first screen.
    const [first] = this.scores.packed.curves ?? [];
    const shade =
      shades.find((s) => nameOf(s) === this.asked('score')) ??
      shades.find((s) => s.measure.key === first?.section && s.statistic.name === first.statistic) ??
      shades[0];
    if (!shade || all.length === 0) {
      this.part('reading').textContent = '';
      return this.showNothing(this.scores.packed.notices.hidden);
    }
    const option = (field: string) => (v: string): [string, string] => [v, labelOf(this.scores, field, v)];
    const data = this.scores.distinct('data', shade.rows),
      chosenData = validOrFirst(data, this.asked('data'));
    const ofData = shade.rows.filter((row) => this.scores.text('data', row) === chosenData);
    const transforms = this.scores.distinct('transform', ofData),
      transform = validOrFirst(transforms, this.asked('transform'));
    const rows = ofData.filter((row) => this.scores.text('transform', row) === transform);
    const one = all.filter((n) => n.model === this.asked('model')),
      shown = one.length > 0 ? one : all.slice(0, modelsAtOnce);
    const models = all.map((n) => option('model')(n.model));
    models.unshift(['', `the first ${modelsAtOnce} of ${all.length}`]);
    this.part('controls').replaceChildren(
      ...this.list(
        'score',
        'Colour',
        shades.map((s) => [nameOf(s), `${s.measure.name}: ${s.statistic.title}`]),
        nameOf(shade),
      ),
      ...this.list('data', 'Data', data.map(option('data')), chosenData),
      ...this.list('transform', 'Transformation', transforms.map(option('transform')), transform),
      ...(all.length > modelsAtOnce ? this.list('model', 'Model', models, shown.length === 1 ? shown[0].model : '') : []),
    );
    const under = transform ? ` under ${labelOf(this.scores, 'transform', transform)}` : '';
    this.part('reading').textContent =
      `From left to right, from the input to the output: a box is a block, or an operation with weights and what follows it; press it to unfold it. ` +
      `Its colour and number are the ${shade.statistic.title}${under} of its last measured layer; dashed boxes have none. ${shade.measure.toward[shade.statistic.name] ?? ''}`;
    this.part('charts').classList.toggle('several', shown.length > 1);
    this.show(shown.map((n) => this.figure(n, shade, rows, under)));
  }

  // shades returns the statistics that layers have, without scores of two models (compared).
  private shades(): Shade[] {
    const s = this.scores;
    return s.measures
      .filter((m) => m.layered)
      .flatMap((measure) => {
        const rows = this.filter
          .passing(s.bySection().get(measure.key) ?? [])
          .filter(
            (row) =>
              s.shown(row) === Shown.overview &&
              s.text('layer', row) !== '' &&
              s.text('compared', row) === '' &&
              s.number('value', row) !== null,
          );
        const [first] = rows; // one variant and factor: those of the first row
        const alike = rows.filter((row) =>
          ['variant', 'factor'].every((f) => s.text(f, row) === s.text(f, first)),
        );
        return measure.statistics.map((statistic) => ({
          measure,
          statistic,
          rows: alike.filter((row) => s.text('statistic', row) === statistic.name),
        }));
      })
      .filter((shade) => shade.rows.length > 0);
  }

  private figure(graph: NetworkGraph, shade: Shade, all: number[], under: string): Figure {
    const rows = new Map<string, number>(); // index of the score, by layer
    for (const row of all)
      if (this.scores.text('model', row) === graph.model) rows.set(this.scores.text('layer', row), row);
    const title = `${graph.model}: ${shade.statistic.title}${under}`;
    return new Figure({
      title,
      description: `Network of ${title}`,
      wide: true,
      build: () => ({
        show: (into) => {
          const drawing = new Drawing(into, graph, rows, shade, this.scores, this.state);
          this.drawings.push(drawing);
          return drawing;
        },
        text: summary(graph, rows, this.scores),
      }),
      describe: () => [],
      data: () => tableOf(`Data of the network: ${title}`, graph.tensors.map((_, i) => i), fieldsOf(graph, rows, this.scores)),
    });
  }
}

const nameOf = (s: Shade) => `${s.measure.key}.${s.statistic.name}`;

const opOf = (g: NetworkGraph, i: number) => g.ops.values[g.ops.codes.length ? g.ops.codes[i] : 0];

// summary returns a sentence on the drawing: its numbers of operations, and the extreme values.
function summary(g: NetworkGraph, rows: Map<string, number>, scores: Scores): string {
  const value = (i: number) => scores.number('value', rows.get(g.tensors[i])!)!;
  const measured = g.tensors.flatMap((t, i) => (rows.has(t) ? [i] : []));
  const what = `${count(g.tensors.length)} operations in ${count(g.names.length)} blocks, ${count(measured.length)} of them measured`;
  if (measured.length === 0) return `${what}.`;
  const least = measured.reduce((a, b) => (value(b) < value(a) ? b : a)),
    most = measured.reduce((a, b) => (value(b) > value(a) ? b : a));
  const at = (i: number) => `${number(value(i))} at ${shorten(labelOf(scores, 'layer', g.tensors[i]), 48)}`;
  return `${what}: from ${at(least)} to ${at(most)}.`;
}

/** A box of the drawing: a group of operations, or an operation inside an unfolded group. */
interface Box {
  group: number;
  operation: number; // -1: a group of several
  layer: string; // whose score it shows; '' where none is measured
  x: number;
  y: number;
  width: number;
  height: number;
  open: boolean; // unfolded
  folds: boolean; // whether there is something to unfold
}

// Sizes in pixels; box is the height of a folded box, header and padding are of an open one.
const size = {
  box: 36,
  minWidth: 52,
  maxWidth: 84,
  gap: 9,
  operation: 22,
  operationWidth: 62,
  header: 17,
  padding: 9,
};

class Drawing implements Drawable {
  private svg = node('svg', {}) as SVGSVGElement;
  private boxes: Box[] = [];
  private marks: SVGElement[] = []; // the element of each box
  private at = 0; // index of the box with the keyboard focus
  private readonly members: number[][] = []; // operations of each group
  private readonly scale: ColourScale;
  private readonly scroll: HTMLElement;

  constructor(
    into: HTMLElement,
    private readonly graph: NetworkGraph,
    private readonly rows: Map<string, number>,
    private readonly shade: Shade,
    private readonly scores: Scores,
    private readonly state: State,
  ) {
    this.scale = shade.measure.colours.scores[shade.statistic.name];
    graph.names.forEach(() => this.members.push([]));
    graph.groups.forEach((g, i) => this.members[g].push(i));
    this.scroll = element('div', { class: 'network' });
    into.append(this.scroll);
    this.draw(into.clientWidth);
  }

  finalize(): void {}

  async toSVG(): Promise<string> {
    const copy = this.svg.cloneNode(true) as SVGSVGElement;
    for (const e of [copy, ...copy.querySelectorAll('*')])
      for (const name of ['tabindex', 'role', 'class', 'aria-selected', 'aria-expanded', 'aria-level'])
        e.removeAttribute(name);
    return new XMLSerializer().serializeToString(copy);
  }

  // opened returns the groups that are unfolded, which the page's address lists as MODEL/GROUP.
  private opened(): Set<number> {
    const start = `${this.graph.model}/`;
    return new Set(
      this.state
        .list('network.open')
        .filter((v) => v.startsWith(start))
        .map((v) => Number(v.slice(start.length))),
    );
  }

  private toggle(group: number): void {
    const name = `${this.graph.model}/${group}`,
      now = this.state.list('network.open');
    this.state.setList(
      'network.open',
      now.includes(name) ? now.filter((v) => v !== name) : [...now, name],
    );
  }

  private draw(width: number): void {
    const { graph, members } = this;
    const opened = this.opened();
    const insides = members.map((of, g) => (opened.has(g) && of.length > 1 ? inside(graph, of) : undefined));
    const reads = members.map((of, g) => [
      ...new Set(of.flatMap((i) => graph.reads[i].map((r) => graph.groups[r])).filter((r) => r !== g)),
    ]);
    const items = (foldedWidth: number): Item[] =>
      members.map((_, g) => {
        const open = insides[g];
        return {
          reads: reads[g].sort((a, b) => a - b),
          width: open ? open.width + 2 * size.padding : foldedWidth,
          height: open ? open.height + size.header + 2 * size.padding : size.box,
        };
      });
    // Folded boxes are as wide as there is room for. A first layout, of boxes of width 1, counts
    // the columns.
    const columns = layout(items(1), 0, 0).centers,
      columnCount = new Set(columns.map(([x]) => x)).size,
      openWidth = insides.reduce((sum, l) => sum + (l ? l.width + 2 * size.padding : 0), 0),
      foldedColumns = columnCount - insides.filter(Boolean).length;
    const foldedWidth = Math.max(
      size.minWidth,
      Math.min(size.maxWidth, (width - openWidth - (columnCount - 1) * size.gap - 4) / Math.max(1, foldedColumns)),
    );
    const placed = layout(items(foldedWidth), size.gap, 6);
    const margin = 3,
      top = 3 + legendHeight;
    const sizes = items(foldedWidth);
    this.boxes = [];
    this.marks = [];
    const shapes: SVGElement[] = placed.edges.map((e) => line(e, margin, top));
    members.forEach((of, g) => {
      const [x, y] = placed.centers[g],
        { width: w, height: h } = sizes[g],
        left = margin + x - w / 2,
        upper = top + y - h / 2,
        open = insides[g];
      const layer = [...of].reverse().find((i) => this.rows.has(graph.tensors[i]));
      const box: Box = {
        group: g,
        operation: of.length === 1 ? of[0] : -1,
        layer: layer === undefined ? '' : graph.tensors[layer],
        x: left,
        y: upper,
        width: w,
        height: h,
        open: Boolean(open),
        folds: of.length > 1,
      };
      shapes.push(this.mark(box));
      if (!open) return;
      const dx = left + size.padding,
        dy = upper + size.padding + size.header;
      shapes.push(...open.edges.map((e) => line(e, dx, dy)));
      of.forEach((i, k) => {
        const [cx, cy] = open.centers[k + 1];
        shapes.push(
          this.mark({
            group: g,
            operation: i,
            layer: this.rows.has(graph.tensors[i]) ? graph.tensors[i] : '',
            x: dx + cx - size.operationWidth / 2,
            y: dy + cy - size.operation / 2,
            width: size.operationWidth,
            height: size.operation,
            open: false,
            folds: false,
          }),
        );
      });
    });
    const w = Math.ceil(Math.max(placed.width + 2 * margin, legendWidth)),
      h = Math.ceil(placed.height + top + 3);
    const svg = node('svg', {
      width: w,
      height: h,
      viewBox: `0 0 ${w} ${h}`,
      role: 'tree',
      'aria-orientation': 'horizontal',
      'aria-label': `Network of ${graph.model}`,
      'font-family': 'system-ui, sans-serif',
    }) as SVGSVGElement;
    svg.append(legend(this.scale), ...shapes);
    svg.addEventListener('keydown', (e) => this.press(e));
    this.svg = svg;
    this.scroll.replaceChildren(svg);
    this.at = Math.min(this.at, this.marks.length - 1);
    this.marks[this.at]?.setAttribute('tabindex', '0');
    this.select();
  }

  // mark draws a box and adds it to those that the keyboard reaches.
  private mark(box: Box): SVGElement {
    const { graph } = this;
    const index = this.boxes.length;
    const row = box.layer === '' ? undefined : this.rows.get(box.layer)!,
      value = row === undefined ? null : this.scores.number('value', row);
    const name = box.operation >= 0 && !this.isGroup(box) ? opOf(graph, box.operation) : graph.names[box.group];
    const fits = Math.max(2, Math.floor((box.width - 5) / 5.7)), // characters of 5.7 pixels
      middle = box.y + box.height / 2;
    // The lines in the box: their text, height, size and weight.
    const lines: [string, number, string, string][] = box.open
      ? [[`− ${tail(name, fits - 2)}`, box.y + 14, '10', '400']]
      : !this.isGroup(box)
        ? [[tail(name, fits), middle + 3.5, '10', '400']]
        : [
            [tail(name, fits), box.y + 14, '10', '400'],
            [value === null ? '–' : brief(value), box.y + 28, '11', '600'],
          ];
    const label = [
      lines.map(([text]) => text).join(' '), // first, since accessible names must contain the visible text
      lines[0][0].endsWith(name) ? '' : name,
      box.operation < 0 ? `${this.members[box.group].length} operations` : '',
      value === null ? 'not measured' : `${this.shade.statistic.title} ${number(value)}`,
    ];
    const g = node('g', {
      role: 'treeitem',
      tabindex: '-1',
      class: 'box',
      'aria-level': this.isGroup(box) ? '1' : '2',
      'aria-label': label.filter(Boolean).join(', '),
      ...(box.folds && { 'aria-expanded': String(box.open) }),
    });
    const filled = value !== null && !box.open;
    const textColour = filled ? textColourOf(this.scale, value) : 'var(--text)';
    g.append(
      node('rect', {
        x: box.x.toFixed(1),
        y: box.y.toFixed(1),
        width: box.width.toFixed(1),
        height: box.height.toFixed(1),
        rx: '5',
        fill: filled ? colourOf(this.scale, value) : box.open ? 'var(--ground)' : 'var(--panel)',
        stroke: 'var(--control)',
        ...(value === null && { 'stroke-dasharray': '3 3' }),
      }),
    );
    const x = (box.x + box.width / 2).toFixed(1);
    const text = lines.flatMap(([content, y, size, weight]) => [
      node('tspan', { x, y: y.toFixed(1), 'font-size': size, 'font-weight': weight }, content),
      ' ',
    ]);
    g.append(node('text', { 'text-anchor': 'middle', fill: textColour }, ...text));
    const tip = tooltip(() =>
      row === undefined
        ? [
            ['operation', box.operation < 0 ? name : `${opOf(graph, box.operation)} ${graph.tensors[box.operation]}`],
            ['', 'not measured'],
          ]
        : describe(this.scores, row),
    );
    // As the last argument, null hides the tooltip, and a number shows it.
    g.addEventListener('pointermove', (e) => tip(null, e as MouseEvent, null, 0));
    g.addEventListener('pointerleave', (e) => tip(null, e as MouseEvent, null, null));
    g.addEventListener('click', () => this.act(index));
    this.boxes.push(box);
    this.marks.push(g);
    return g;
  }

  // isGroup reports whether a box is that of a group, open or not, and not an operation within one.
  private isGroup(box: Box): boolean {
    return box.operation < 0 || this.members[box.group].length === 1;
  }

  private press(e: KeyboardEvent): void {
    const last = this.marks.length - 1;
    const to: Record<string, number> = {
      ArrowRight: Math.min(last, this.at + 1),
      ArrowDown: Math.min(last, this.at + 1),
      ArrowLeft: Math.max(0, this.at - 1),
      ArrowUp: Math.max(0, this.at - 1),
      Home: 0,
      End: last,
    };
    if (e.key in to) this.focus(to[e.key]);
    else if (e.key === 'Enter' || e.key === ' ') this.act(this.at);
    else return;
    e.preventDefault();
  }

  private focus(index: number): void {
    this.marks[this.at]?.setAttribute('tabindex', '-1');
    this.at = index;
    const mark = this.marks[index];
    mark.setAttribute('tabindex', '0');
    mark.focus();
  }

  // act unfolds or folds a group, and chooses the layer of a box.
  private act(index: number): void {
    const box = this.boxes[index];
    const focused = this.scroll.contains(document.activeElement);
    const { model } = this.graph,
      chosen = layerOf(this.state);
    const same = chosen?.model === model && chosen.layer === box.layer;
    if (box.folds) {
      this.toggle(box.group);
      const at = this.scroll.scrollLeft;
      this.at = index;
      this.draw(this.scroll.parentElement!.clientWidth);
      this.scroll.scrollLeft = at;
      if (focused) this.focus(index);
    } else if (focused) this.focus(index);
    if (box.layer !== '' && !(same && box.folds))
      chooseLayer(this.state, this.scores, same ? undefined : { model, layer: box.layer });
  }

  /** Marks the box of the chosen layer, or the folded box that holds it. */
  select(): void {
    const chosen = layerOf(this.state);
    const at = chosen?.model === this.graph.model ? this.graph.tensors.indexOf(chosen.layer) : -1;
    this.boxes.forEach((box, i) => {
      const holds = box.operation < 0 && !box.open && this.graph.groups[at] === box.group;
      const on = at >= 0 && (holds || chosen!.layer === box.layer);
      this.marks[i].setAttribute('aria-selected', String(on));
      const rect = this.marks[i].querySelector('rect')!;
      rect.setAttribute('stroke', on ? 'var(--accent)' : 'var(--control)');
      rect.setAttribute('stroke-width', on ? '3' : '1');
    });
  }
}

// inside lays out the operations of a group (of), between two items without size: an entry, which
// stands for the operations before the group, and an exit, for those after it.
function inside(g: NetworkGraph, of: number[]) {
  const place = new Map(of.map((i, k) => [i, k + 1]));
  const items: Item[] = [{ reads: [], width: 0, height: 0 }];
  const read = new Set<number>();
  for (const i of of) {
    const reads = g.reads[i].flatMap((r) => place.get(r) ?? []);
    reads.forEach((r) => read.add(r));
    const outside = g.reads[i].length === 0 || reads.length < g.reads[i].length;
    items.push({
      reads: outside ? [0, ...reads] : reads,
      width: size.operationWidth,
      height: size.operation,
    });
  }
  const ends = of.map((_, k) => k + 1).filter((k) => !read.has(k));
  const used = new Set<number>(ends);
  g.reads.forEach((reads, i) => {
    if (!place.has(i)) for (const r of reads) if (place.has(r)) used.add(place.get(r)!);
  });
  items.push({ reads: [...used].sort((a, b) => a - b), width: 0, height: 0 });
  return layout(items, 14, 6);
}

function line(e: Edge, dx: number, dy: number): SVGElement {
  return node('path', {
    d: e.path,
    transform: `translate(${dx.toFixed(1)} ${dy.toFixed(1)})`,
    fill: 'none',
    stroke: 'var(--control)',
    'stroke-width': '1.2',
    'aria-hidden': 'true',
  });
}

const legendHeight = 24;
const legendWidth = 190;

// legend shows the colours of the scale with the values at its ends.
function legend({ stops, colours }: ColourScale): SVGElement {
  const g = node('g', { 'aria-hidden': 'true', 'font-size': '11', fill: 'var(--muted)' });
  const write = (text: string, x: number, anchor: string) =>
    g.append(node('text', { x, y: 14, 'text-anchor': anchor }, text));
  const left = 46, // pixels
    width = 98,
    each = width / colours.length;
  write(brief(stops[0]), left - 5, 'end');
  colours.forEach((c, i) =>
    g.append(
      node('rect', { x: (left + i * each).toFixed(1), y: 5, width: (each + 0.4).toFixed(1), height: 10, fill: c }),
    ),
  );
  write(brief(stops[stops.length - 1]), left + width + 5, 'start');
  return g;
}

// placeOf returns where a value lies on a scale, from 0 to the number of colours less 1.
function placeOf({ stops, colours }: ColourScale, v: number): number {
  const share = (v - stops[0]) / (stops[stops.length - 1] - stops[0]);
  return Math.max(0, Math.min(1, share)) * (colours.length - 1);
}

function colourOf(scale: ColourScale, v: number): string {
  const at = placeOf(scale, v),
    i = Math.min(Math.floor(at), scale.colours.length - 2);
  const mix = [1, 3, 5].map((k) => {
    const [a, b] = [scale.colours[i], scale.colours[i + 1]].map((c) => Number.parseInt(c.slice(k, k + 2), 16));
    return Math.round(a + (at - i) * (b - a));
  });
  return `rgb(${mix.join(' ')})`;
}

// textColourOf returns the colour of text on a box of a value's colour.
const textColourOf = (scale: ColourScale, v: number) => scale.inks[Math.round(placeOf(scale, v))];

/** A number in few characters, for a box. */
function brief(v: number): string {
  const size = Math.abs(v);
  if (size >= 1e4 || (size > 0 && size < 0.005)) return v.toExponential(0);
  return size >= 100 ? v.toFixed(0) : size >= 10 ? v.toFixed(1) : v.toFixed(2);
}

// tail returns the end of a name, where the names of blocks differ, in at most length characters.
function tail(name: string, length: number): string {
  return name.length <= length ? name : `…${name.slice(name.length - Math.max(1, length - 1))}`;
}

// fieldsOf returns the columns of the operations of a network and their scores.
function fieldsOf(g: NetworkGraph, rows: Map<string, number>, scores: Scores): Field<number>[] {
  const score = (name: string): Field<number> => [
    name,
    (i) => {
      const row = rows.get(g.tensors[i]);
      return row === undefined ? null : scores.number(name, row);
    },
  ];
  return [
    ['operation', (i) => i + 1, true],
    ['block', (i) => g.names[g.groups[i]]],
    ['operator', (i) => opOf(g, i)],
    ['tensor', (i) => labelOf(scores, 'layer', g.tensors[i])],
    ['reads', (i) => g.reads[i].map((r) => r + 1).join(' ')],
    ...['value', 'low', 'high', 'null'].map(score),
  ];
}
