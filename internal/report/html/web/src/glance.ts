// The first screen of a report: a matrix of one score, and for its column in focus, which is under
// the pointer or was clicked, curves over depth and a strip of sample images. The field across of a
// matrix is "name" if its columns are transformations.

import { onChosenValue, placeOf } from './chosenvalue';
import { Part } from './controls';
import type { Context } from './chart';
import {
  Shown,
  type ContactSheet,
  type Matrix,
  type MatrixCell,
  type SampleSheet,
  type Scores,
} from './data';
import { button, element, node } from './dom';
import type { Filter } from './filters';
import { capital, interval, number, shorten } from './format';
import { layerOf, onLayer, toggleLayer } from './layer';
import { small } from './marks';
import { swatch } from './palette';
import { queue } from './queue';
import { describe } from './scoretable';
import { labelOf, Series } from './series';
import type { State } from './state';
import { draw, onRow, type View } from './vega';

const minModelsToOrder = 4; // with fewer models their order cannot be chosen
const hoverDelay = 80; // milliseconds that the pointer must rest on a column to draw its curves

export class Glance extends Part {
  private readonly scoreBox = element('div', { class: 'scorebox' });
  private readonly curvesBox = element('div', { class: 'curves' });
  private readonly strip = element('div', { class: 'strip' }); // images, original and transformed
  private readonly matrices: Matrix[];
  private modelSeries!: Series; // the models, with their colours and markers
  private hoveredColumn = ''; // the column under the pointer
  private drawnKey = ''; // the score, data and column that the curves and the strip show
  private views: View[] = []; // of the curves
  private hoverTimer = 0;

  constructor(
    root: HTMLElement,
    scores: Scores,
    state: State,
    filter: Filter,
    private readonly open: (section: string) => void,
    private readonly openSamples: (sheet: SampleSheet) => void,
  ) {
    super(root, scores, state, filter, 'glance');
    this.matrices = scores.packed.matrices ?? [];
    root.replaceChildren(element('div', {}, this.scoreBox, this.strip), this.curvesBox);
    onChosenValue(() => {
      const m = this.matrix();
      if (m?.across === 'name') this.showImages(m, this.focusedColumn(m));
    });
    onLayer(() => {
      this.drawnKey = '';
      this.updateFocus();
    });
  }

  update(): void {
    const matrix = this.matrix();
    if (!matrix) return;
    this.modelSeries = new Series(
      this.scores,
      'model',
      this.scores,
      this.state.get('highlight.model'),
    );
    this.scoreBox.replaceChildren(...this.heading(matrix), this.table(matrix), this.legend(matrix));
    this.drawnKey = '';
    this.updateFocus();
  }

  private matrix(): Matrix | undefined {
    const score = this.asked('score'),
      data = this.asked('data');
    const chosen = this.matrices.filter((m) => m.section === score);
    const all = chosen.length > 0 ? chosen : this.matrices;
    return all.find((m) => m.data === data) ?? all[0];
  }

  /** The column in focus: the one under the pointer, or the one that was clicked, or the first. */
  private focusedColumn(m: Matrix): string {
    const shown = this.shownColumns(m);
    return (
      [this.hoveredColumn, this.asked('at')].find((c) => shown.includes(c)) ?? shown[0] ?? ''
    );
  }

  private shownColumns(m: Matrix): string[] {
    const hidden = this.filter.hidden(m.across === 'name' ? 'transform' : m.across);
    return m.columns.filter((c) => !hidden.has(c));
  }

  private heading(m: Matrix): HTMLElement[] {
    const title = m.layer ? `${m.title}, at the last layer` : m.title;
    const text = element('h3', { title: m.about }, capital(title));
    const sections = new Map(this.matrices.map((x) => [x.section, x.title]));
    const data = this.matrices.filter((x) => x.section === m.section).map((x) => x.data);
    const orders: [string, string][] = [['', 'of the study'], ['best', 'best first']];
    const controls = [
      ...this.list('score', 'Score', [...sections], m.section),
      ...this.list('data', 'Data', data, m.data),
      ...(m.models.length < minModelsToOrder ? [] : this.list('order', 'Order', orders, this.asked('order'))),
    ];
    return [
      element('div', { class: 'head' }, text, element('div', { class: 'choices' }, ...controls)),
      element('p', { class: 'key' }, m.meaning),
    ];
  }

  private table(m: Matrix): HTMLElement {
    const hidden = this.filter.hidden('model'),
      columns = this.shownColumns(m),
      at = this.focusedColumn(m);
    const heads = columns.map((c) => {
      const head = button(
        () => this.selectColumn(c),
        { 'aria-pressed': String(c === at), title: c },
        shorten(labelOf(this.scores, m.across, c), 18),
      );
      head.addEventListener('focus', () => this.hover(c));
      const th = element('th', { scope: 'col', 'data-column': c }, head);
      th.addEventListener('pointerenter', () => this.hover(c));
      return th;
    });
    const rows = this.modelOrder(m).flatMap((i) => {
      const model = m.models[i];
      if (hidden.has(model)) return [];
      const cells = columns.map((c) => {
        const cell = m.cells.find((x) => x.model === i && m.columns[x.column] === c);
        const td = element('td', { 'data-column': c });
        if (cell) td.append(this.cell(m, cell, model, c));
        td.addEventListener('pointerenter', () => this.hover(c));
        return td;
      });
      const name = element(
        'th',
        { scope: 'row', title: model },
        swatch(this.modelSeries.look(model)),
        element('span', {}, shorten(model, 22)),
        ...(m.clean?.[i]
          ? [
              element(
                'small',
                { class: 'wide', title: `${m.cleanName} without a transformation: ${m.clean[i]}` },
                m.clean[i].split(' ')[0],
              ),
            ]
          : []),
      );
      return [element('tr', {}, name, ...cells)];
    });
    const table = element(
      'table',
      { class: 'matrix' },
      element('caption', {}, `${m.title} of each model: ${m.about}`),
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          // What the number beside each model is: accuracy, mAP, mean IoU or agreement.
          element('td', {}, element('small', { class: 'wide' }, m.clean ? m.cleanName.replace(/ with .*/, '') : '')),
          ...heads,
        ),
      ),
      element('tbody', {}, ...rows),
    );
    table.addEventListener('pointerleave', () => this.hover(''));
    return element(
      'div',
      { class: 'scroll', role: 'region', 'aria-label': 'Scores of the models', tabindex: '0' },
      table,
    );
  }

  // modelOrder returns the indices of the models in the chosen order: that of the study, or the
  // best first in the column in focus.
  private modelOrder(m: Matrix): number[] {
    const all = m.models.map((_, i) => i);
    if (this.asked('order') !== 'best') return all;
    const at = m.columns.indexOf(this.focusedColumn(m));
    const value = (i: number) => {
      const cell = m.cells.find((x) => x.model === i && x.column === at);
      const v = cell ? this.scores.number('value', cell.row) : null;
      return v === null ? -Infinity : m.lower ? -v : v;
    };
    return all.sort((a, b) => value(b) - value(a));
  }

  private cell(m: Matrix, cell: MatrixCell, model: string, matrixColumn: string): HTMLElement {
    const column = (name: string) => this.scores.number(name, cell.row);
    const value = column('value'),
      low = column('low'),
      high = column('high'),
      chance = column('null');
    const shown = cell.curve ? this.ends(m, cell.curve).join(' → ') : number(value);
    const about = [
      `${model}, ${labelOf(this.scores, m.across, matrixColumn)}: ${m.title} ${shown}`,
      low === null ? '' : `95 % interval ${interval(low, high)}`,
      chance === null ? '' : `chance ${number(chance)}`,
      cell.chance ? 'no better than chance' : '',
      cell.curve ? `mean over ${cell.curve.length} values ${number(value)}` : '',
      ...(cell.curve ?? []).map(
        (i) => `${this.scores.text('parameter', i)}: ${number(this.scores.number('value', i))}`,
      ),
    ].filter(Boolean);
    const open = () => {
      this.selectColumn(matrixColumn);
      this.open(m.section);
    };
    const made = button(
      open,
      {
        class: cell.chance ? 'cell chance' : 'cell',
        'aria-label': `${about.join(', ')}. Open its section`,
        title: about.join('\n'),
      },
      element('b', {}, ...(cell.curve ? this.endsOf(m, cell.curve) : [shown])),
      cell.curve ? this.curve(m, cell.curve) : this.intervalMark(m, value, low, high, chance),
    );
    made.style.setProperty('--shade', String(cell.shade));
    made.addEventListener('focus', () => this.hover(matrixColumn));
    return made;
  }

  private valuesOf(rows: number[]): number[] {
    return rows.map((i) => this.scores.number('value', i)).filter((v) => v !== null);
  }

  // ends returns the best and the worst value of a curve over the values of a transformation.
  private ends(m: Matrix, rows: number[]): [string, string] {
    const values = this.valuesOf(rows);
    const [high, low] = [Math.max(...values), Math.min(...values)].map(number);
    return m.lower ? [low, high] : [high, low];
  }

  // endsOf returns both values for a cell; a narrow screen has room for the worst.
  private endsOf(m: Matrix, rows: number[]): (Node | string)[] {
    const [best, worst] = this.ends(m, rows);
    return [wideOnly(`${best} → `), worst];
  }

  // curve draws a curve on the scale of the matrix.
  private curve(m: Matrix, rows: number[]): SVGElement {
    const values = this.valuesOf(rows);
    const y = (v: number) => 17 - 16 * Math.max(0, Math.min(1, (v - m.low) / (m.high - m.low)));
    const points = values.map((v, k) => `${(4 + (92 * k) / (values.length - 1)).toFixed(1)},${y(v).toFixed(1)}`);
    const svg = node('svg', { width: '100%', height: '9', viewBox: '0 0 100 18', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    svg.append(node('polyline', { points: points.join(' '), class: 'curve' }));
    return svg;
  }

  // intervalMark draws a value with its interval and null on the scale of the matrix.
  private intervalMark(
    m: Matrix,
    value: number | null,
    low: number | null,
    high: number | null,
    chance: number | null,
  ): SVGElement {
    const x = (v: number) =>
      `${(4 + 92 * Math.max(0, Math.min(1, (v - m.low) / (m.high - m.low)))).toFixed(1)}%`;
    const svg = node('svg', { width: '100%', height: '9', 'aria-hidden': 'true' });
    const line = (from: string, to: string, attributes: Record<string, string>) =>
      svg.append(node('line', { x1: from, x2: to, y1: '4.5', y2: '4.5', ...attributes }));
    line('4%', '96%', { class: 'scale' });
    if (chance !== null) line(x(chance), x(chance), { y1: '0', y2: '9', class: 'null' });
    if (low !== null && high !== null) line(x(low), x(high), { class: 'interval' });
    if (value !== null) svg.append(node('circle', { cx: x(value), cy: '4.5', r: '2.6' }));
    return svg;
  }

  private legend(m: Matrix): HTMLElement {
    const colourScale = element('span', { class: 'ramp', 'aria-hidden': 'true' });
    const [worst, best] = m.lower ? [m.high, m.low] : [m.low, m.high];
    const parts: (Node | string)[] = m.null
      ? ['Colour: from chance ', colourScale, ' to the best possible', wideOnly('; hatched: no better than chance')]
      : [`Colour: from ${number(worst)} `, colourScale, ` to ${number(best)}`];
    const curves = m.cells.some((c) => c.curve);
    if (m.cells.some((c) => !c.curve)) {
      if (m.null) parts.push('; dotted: chance', wideOnly(curves ? '' : ` (${m.null})`));
      parts.push('; bar: 95 % interval');
    }
    if (curves) {
      parts.push('; ', wideOnly('best → '), 'worst value');
    }
    return element('p', { class: 'key' }, ...parts, '. ', wideOnly(m.toward));
  }

  private hover(column: string): void {
    if (column === this.hoveredColumn) return;
    this.hoveredColumn = column;
    this.updateFocus();
  }

  private selectColumn(column: string): void {
    this.state.set('glance.at', column);
    this.hoveredColumn = column;
    const m = this.matrix();
    if (m && this.asked('order') === 'best') {
      const button = `th[data-column="${CSS.escape(column)}"] button`;
      this.scoreBox.querySelector('table')?.replaceWith(this.table(m).querySelector('table')!);
      this.scoreBox.querySelector<HTMLElement>(button)?.focus();
    }
    this.updateFocus();
  }

  // updateFocus marks the column in focus in the matrix, and draws its curves and images when the
  // pointer has rested on it.
  private updateFocus(): void {
    const m = this.matrix();
    if (!m) return;
    const focused = this.focusedColumn(m);
    for (const e of this.scoreBox.querySelectorAll<HTMLElement>('[data-column]')) {
      e.classList.toggle('at', e.dataset.column === focused);
      e.querySelector('button[aria-pressed]')?.setAttribute(
        'aria-pressed',
        String(e.dataset.column === focused),
      );
    }
    window.clearTimeout(this.hoverTimer);
    const key = `${m.section} ${m.data} ${focused}`;
    if (key === this.drawnKey) return;
    const show = () => {
      this.drawnKey = key;
      const transform = m.across === 'name' ? focused : '';
      this.drawCurves(m, transform);
      this.showImages(m, transform);
    };
    if (this.drawnKey === '') show();
    else this.hoverTimer = window.setTimeout(show, hoverDelay);
  }

  private drawCurves(m: Matrix, transform: string): void {
    const old = this.views;
    this.views = [];
    const boxes: HTMLElement[] = [];
    const under = transform && `under ${labelOf(this.scores, 'transform', transform)}`;
    for (const panel of this.scores.packed.curves ?? []) {
      const c = this.context(panel.section, panel.statistic, m.data, transform);
      if (!c || c.rows.length === 0) continue;
      const title = `${panel.title} ${under}`.trim();
      const chart = element('div', { class: 'chart' });
      const link = button(() => this.open(panel.section), { class: 'quiet' }, title);
      const box = element('figure', { class: 'small' }, element('figcaption', {}, link), chart);
      boxes.push(box);
      queue.add(box, async () => {
        if (!box.isConnected) return;
        const view = await draw(chart, small(c, c.rows), title, (row) => describe(c.table, row));
        chart.classList.add('drawn', 'choosing');
        const text = (name: string, row: number) => this.scores.text(name, row);
        onRow(view, (row) =>
          toggleLayer(this.state, this.scores, { model: text('model', row), layer: text('layer', row) }),
        );
        this.views.push(view);
      });
    }
    for (const gone of this.curvesBox.querySelectorAll('figure')) queue.remove(gone);
    this.curvesBox.replaceChildren(...boxes);
    this.curvesBox.hidden = boxes.length === 0;
    for (const view of old) view.finalize();
  }

  // context returns what a chart of curves is drawn from: the scores of one transformation, variant
  // and factor, with one curve for each model. Layers inside branches are left out.
  private context(
    section: string,
    statistic: string,
    data: string,
    transform: string,
  ): Context | undefined {
    const s = this.scores,
      measure = s.measures.find((x) => x.key === section),
      chart = measure?.charts?.find((x) => x.name === 'depth');
    if (!measure || !chart) return undefined;
    const rows = this.filter.passing(
      (s.bySection().get(section) ?? []).filter(
        (row) =>
          s.shown(row) === Shown.overview &&
          s.text('statistic', row) === statistic &&
          s.text('data', row) === data &&
          s.text('layer', row) !== '' &&
          s.text('branch', row) === '' &&
          s.number('value', row) !== null &&
          (transform === '' || s.text('transform', row) === transform),
      ),
    );
    const first = rows[0];
    const ofFirst = rows.filter((row) =>
      ['transform', 'variant', 'factor'].every((f) => s.text(f, row) === s.text(f, first)),
    );
    const choice = (name: string) => this.state.get(`${section}.${name}`);
    return {
      scores: s,
      table: s,
      chart,
      measure,
      statistic: measure.statistics.find((x) => x.name === statistic)!,
      rows: ofFirst,
      series: this.modelSeries,
      choice,
      chosenValue: () => '',
      layer: () => layerOf(this.state),
    };
  }

  private showImages(m: Matrix, transform: string): void {
    const sheet = (this.scores.packed.pictures ?? []).find(
      (p) => p.sheet?.transform === transform && p.sheet.data === m.data,
    );
    const link = this.samplesLink(m, transform);
    this.strip.hidden = !sheet && link.length === 0;
    if (!sheet) return this.strip.replaceChildren(...link);
    const at = this.shownValue(m, transform, sheet);
    const scoreLines = this.sampleScores(m, sheet, at);
    const has = (part: string) => scoreLines.some((e) => e.matches(part));
    const key = [
      m.title,
      wideOnly(' of each image'),
      ` under ${columnName(sheet, at + 1)}`,
      ...(has('.wrong') ? [`; ${wrongMark}not its label`] : []),
      ...(has('.chance') ? [wideOnly('; hatched: the worst')] : []),
      '.',
    ];
    this.strip.replaceChildren(
      imagePairs(sheet, scoreLines, at),
      ...(scoreLines.length > 0 ? [element('p', { class: 'key numbers' }, ...key)] : []),
      ...link,
    );
  }

  // shownValue returns the index of the parameter's value that the images show: the chosen one, or
  // else the one that changes the samples most (placeOf). Without a sample sheet it is the last.
  private shownValue(m: Matrix, transform: string, p: ContactSheet): number {
    const { parameters } = p.sheet!;
    const samples = (this.scores.packed.sheets ?? []).find(
      (s) => s.transform === transform && s.data === m.data,
    );
    const value = samples ? samples.parameters[placeOf(this.state, samples)] : '';
    const at = parameters.indexOf(value);
    return at < 0 ? parameters.length - 1 : at;
  }

  // samplesLink returns a button that opens the samples that fail or change most.
  private samplesLink(m: Matrix, transform: string): HTMLElement[] {
    const sheet = (this.scores.packed.sheets ?? []).find(
      (s) => s.transform === transform && s.data === m.data,
    );
    if (!sheet) return [];
    const fails = sheet.models.some((x) => (x.fails ?? []).length > 0);
    const name = shorten(labelOf(this.scores, 'transform', transform), 24);
    const text = fails
      ? `Show ${sheet.tile ? 'images' : 'samples'} that fail under ${name}`
      : `Show what ${name} changes most`;
    return [button(() => this.openSamples(sheet), { class: 'go' }, text)];
  }

  // sampleScores returns lines beneath the images: the score of each image for each model, where
  // the run has per-sample values. If there are more models than colours (crowded), it is only the
  // highlighted model. at is the index of the parameter's value.
  private sampleScores(m: Matrix, p: ContactSheet, at: number): HTMLElement[] {
    const { parameters, samples, transform, data } = p.sheet!;
    const measure = this.scores.measures.find((x) => x.key === m.section)?.name;
    const under = (this.scores.packed.samples ?? []).filter(
      (v) => v.transform === transform && v.data === data && v.parameter === parameters[at],
    );
    const scores = under.filter((v) => v.measure === measure && v.statistic === m.statistic);
    const wrong = under.filter((v) => v.measure === 'accuracy' && v.statistic === 'correct-moved' && v.value === 0);
    const hidden = this.filter.hidden('model');
    let models = m.models.filter((x) => !hidden.has(x) && scores.some((v) => v.model === x));
    if (this.modelSeries.crowded) models = models.filter((x) => x === this.modelSeries.highlight);
    return models.slice(0, maxScoreLines).flatMap((model) => [
      element(
        'span',
        { class: 'what', title: `${m.title} of each image, ${model}` },
        swatch(this.modelSeries.look(model)),
        ' ',
        shorten(model, 10),
      ),
      ...samples.map((sample) => {
        const value = scores.find((v) => v.model === model && v.sample === sample)?.value ?? null;
        const share = value === null ? 0 : (value - m.low) / (m.high - m.low);
        const shade = m.lower ? 1 - share : share;
        const isWrong = wrong.some((v) => v.model === model && v.sample === sample);
        const about = `${model}: ${m.title} ${number(value)}${isWrong ? ', the class is wrong' : ''}`;
        const cell = element(
          'span',
          { class: ['value', shade <= 0 && 'chance', isWrong && 'wrong'].filter(Boolean).join(' '), title: about },
          (isWrong ? wrongMark : '') + (value === null ? '–' : value.toFixed(2)),
        );
        cell.style.setProperty('--shade', String(Math.max(0, Math.min(1, shade))));
        return cell;
      }),
    ]);
  }
}

// wideOnly returns text that narrow screens leave out.
const wideOnly = (text: string) => element('span', { class: 'wide' }, text);

const wrongMark = '✗ ';
const maxScoreLines = 4; // models with a line of scores beneath the images

// columnName names a column of a contact sheet; 0 holds the original images.
function columnName(p: ContactSheet, column: number): string {
  const { parameters, transform } = p.sheet!;
  return column === 0 ? 'as it is' : [transform, parameters[column - 1]].filter(Boolean).join(' ');
}

// imagePairs shows the samples of a contact sheet in two lines, the original above the transformed
// images, and their scores below. The transformed images are those of column at + 1.
function imagePairs(p: ContactSheet, scoreLines: HTMLElement[], at: number): HTMLElement {
  const { parameters, samples, gap } = p.sheet!;
  const columns = parameters.length + 1,
    w = (p.width - gap) / columns - gap,
    h = (p.height - gap) / samples.length - gap;
  const shown = [0, at + 1]; // columns of the sheet
  const grid = element('div', { class: 'pairs' });
  const name = (column: number) => columnName(p, column);
  for (const column of shown) {
    const tiles = samples.map(() => element('canvas', { width: w, height: h, 'aria-hidden': 'true' }));
    grid.append(element('span', { class: 'what' }, name(column)), ...tiles);
    const image = new Image();
    image.src = `data:image/png;base64,${p.png}`;
    void image.decode().then(() =>
      tiles.forEach((canvas, i) =>
        canvas
          .getContext('2d')!
          .drawImage(image, gap + column * (w + gap), gap + i * (h + gap), w, h, 0, 0, w, h),
      ),
    );
  }
  grid.append(...scoreLines);
  grid.style.setProperty('--samples', String(samples.length));
  const about = `${samples.length} samples, ${name(0)} and under ${name(at + 1)}`;
  return element('div', { role: 'group', 'aria-label': about }, grid);
}
