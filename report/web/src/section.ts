// The section of one measure: what to look at, the charts of it, and the table of its scores.

import { curves, dots, draw, type Point } from './chart';
import { heat, isGrid, type Tile } from './heat';
import { Scores, Shown, type Measure, type Statistic, type TextName } from './data';
import { element } from './dom';
import { interval, number, shorten } from './format';
import { swatch } from './palette';
import { table } from './table';

/** What a reader has chosen to see. An empty parameter is the mean over the values, an empty factor all samples. */
interface Choice {
  statistic: string;
  data: string;
  variant: string;
  parameter: string;
  factor: string;
}

export class Section {
  private readonly rows: number[]; // the measure's, trials summarised
  private readonly choice: Choice;
  private drawing = 0; // of the latest choice: an older one stops

  constructor(
    private readonly root: HTMLElement,
    private readonly scores: Scores,
    private readonly measure: Measure,
    private readonly models: string[], // of the whole report, so that colours are the same everywhere
  ) {
    this.rows = scores.where((row) => scores.text('measure', row) === measure.name && scores.shown(row) >= Shown.trials);
    const first = (name: TextName) => scores.distinct(name, this.rows)[0] ?? '';
    this.choice = { statistic: measure.statistics[0].name, data: first('data'), variant: first('variant'), parameter: '', factor: '' };
    this.controls();
    this.legend();
    this.part('scores').append(table(scores, measure.name, root.querySelector('h2')!.textContent!));
  }

  private part(name: string): HTMLElement {
    return this.root.querySelector<HTMLElement>(`.${name}`)!;
  }

  private get statistic(): Statistic {
    return this.measure.statistics.find((s) => s.name === this.choice.statistic)!;
  }

  private controls(): void {
    const into = this.part('controls');
    if (this.measure.statistics.length > 1) into.append(this.statistics());
    this.chooser(into, 'Data', 'data', (name) => name);
    this.chooser(into, 'Variant', 'variant', (name) => name || 'default');
    if (this.measure.layered) this.chooser(into, 'Value of the parameter', 'parameter', (name) => name || 'mean');
    this.chooser(into, 'Class', 'factor', (name) => name.replace(/^class=/, '') || 'all samples');
    into.hidden = into.childElementCount === 0;
  }

  private statistics(): HTMLElement {
    const set = element('fieldset', { class: 'segments' }, element('legend', {}, 'Statistic'));
    for (const s of this.measure.statistics) {
      const input = element('input', { type: 'radio', name: `${this.root.id}-statistic`, value: s.name });
      input.checked = s.name === this.choice.statistic;
      input.addEventListener('change', () => {
        this.choice.statistic = s.name;
        void this.draw();
      });
      set.append(element('label', { title: s.about }, input, element('span', {}, s.name)));
    }
    return set;
  }

  // chooser offers the values of a column, where there are several.
  private chooser(into: HTMLElement, title: string, name: 'data' | 'variant' | 'parameter' | 'factor', label: (value: string) => string): void {
    const values = this.scores.distinct(name, this.rows);
    if (values.length < 2) return;
    if ((name === 'parameter' || name === 'factor') && !values.includes('')) values.unshift('');
    values.sort((a, b) => Number(a !== '') - Number(b !== ''));
    const select = element('select');
    for (const value of values) select.append(element('option', { value }, label(value)));
    select.value = this.choice[name];
    select.addEventListener('change', () => {
      this.choice[name] = select.value;
      void this.draw();
    });
    into.append(element('label', { class: 'chooser' }, title, select));
  }

  private legend(): void {
    const pairs = this.by(this.rows, (row) => this.scores.text('model', row));
    const present = new Set(pairs.filter(([, rows]) => !this.measure.layered || !isGrid(this.scores, rows)).map(([model]) => model)); // heat maps have no lines
    const list = element('ul');
    this.models.forEach((model, i) => {
      if (present.has(model)) list.append(element('li', {}, swatch(i), shorten(model, 40)));
    });
    if (present.size > 0 && this.rows.some((row) => this.scores.number('null', row) !== null)) {
      list.append(element('li', { class: 'aside' }, `${this.measure.layered ? 'dotted' : 'dotted or a bar'}: the null, what shuffled pairs give`));
    }
    this.part('legend').append(list);
  }

  /** Draws the charts of what is chosen, one after the other, so that the page stays responsive. */
  async draw(): Promise<void> {
    const turn = ++this.drawing;
    const into = this.part('charts');
    const panels = this.measure.layered ? this.layerPanels() : this.predictionPanels();
    into.style.minHeight = `${into.offsetHeight}px`; // the page does not jump while charts are replaced
    into.replaceChildren();
    if (panels.length === 0) into.append(element('p', { class: 'none' }, 'There are no scores for this choice.'));
    for (const panel of panels) {
      const chart = element('div', { class: 'chart' });
      into.append(element('figure', panel.wide ? { class: 'wide' } : {}, element('figcaption', {}, panel.title), chart));
      await draw(chart, panel.spec, `${this.statistic.title}, ${panel.title}`);
      if (turn !== this.drawing) return;
    }
    into.style.minHeight = '';
  }

  // chosen are the rows of the statistic, data, variant and class; under says which parameter.
  private chosen(under: (row: number) => boolean): number[] {
    const { statistic, data, variant, factor } = this.choice;
    const s = this.scores;
    return this.rows.filter((row) =>
      s.text('statistic', row) === statistic && s.text('data', row) === data && s.text('variant', row) === variant &&
      s.text('factor', row) === factor && under(row));
  }

  // layerPanels are curves over depth, one panel for each transformation; layers that are compared with several others
  // make a heat map of their own for each pair of models.
  private layerPanels() {
    const { parameter } = this.choice;
    const rows = this.chosen((row) => parameter === '' ? this.scores.shown(row) === Shown.overview : this.scores.text('parameter', row) === parameter);
    return this.by(rows, (row) => this.label(row)).flatMap(([title, of]) => {
      const models = this.by(of, (row) => this.scores.text('model', row));
      const grids = models.filter(([, rows]) => isGrid(this.scores, rows));
      const lines = models.filter(([, rows]) => !isGrid(this.scores, rows)).flatMap(([, rows]) => rows);
      const panels = grids.map(([model, rows]) => ({
        title: [model, title].filter(Boolean).join(', '), wide: false, spec: heat(this.tiles(rows), this.statistic),
      }));
      if (lines.length > 0) {
        panels.unshift({
          title: title || this.statistic.title, wide: false,
          spec: curves(this.points(lines, (row) => this.scores.number('depth', row)!), this.models, this.statistic, 'depth of the layer'),
        });
      }
      return panels;
    });
  }

  private tiles(rows: number[]): Tile[] {
    const s = this.scores;
    return rows.map((row) => ({
      layer: s.text('layer', row), depth: s.number('depth', row)!, other: s.text('other', row), otherDepth: s.number('otherDepth', row)!,
      value: s.number('value', row), said: [number(s.number('value', row)), interval(s.number('low', row), s.number('high', row))].filter(Boolean).join(' '),
      chance: s.number('null', row) === null ? '' : number(s.number('null', row)),
    }));
  }

  // predictionPanels are the transformations side by side, then a curve for each one with several values.
  private predictionPanels() {
    const shown = this.chosen((row) => this.scores.shown(row) === Shown.overview);
    if (shown.length === 0) return [];
    const points = this.points(shown, () => 0);
    const moved = shown.some((row) => this.label(row) !== '');
    if (!moved) for (const p of points) p.row = p.model;
    const panels = [{ title: moved ? 'all transformations' : 'all models', wide: true, spec: dots(points, this.models, this.statistic) }];
    const valued = this.chosen((row) => this.scores.text('parameter', row) !== '');
    for (const [title, rows] of this.by(valued, (row) => this.scores.text('transform', row))) {
      if (this.scores.distinct('parameter', rows).length < 2) continue;
      panels.push({
        title: `${title} by value`, wide: false,
        spec: curves(this.points(rows, (row) => parameter(this.scores.text('parameter', row))), this.models, this.statistic, 'value of the parameter'),
      });
    }
    return panels;
  }

  // label is the transformation, with its value where no mean stands for the values.
  private label(row: number): string {
    return [this.scores.text('transform', row), this.scores.text('parameter', row)].filter(Boolean).join(' ');
  }

  private by(rows: number[], key: (row: number) => string): [string, number[]][] {
    const groups = new Map<string, number[]>();
    for (const row of rows) groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
    return [...groups];
  }

  private points(rows: number[], x: (row: number) => number | string): Point[] {
    const s = this.scores;
    return rows.map((row) => {
      const [value, low, high, chance] = [s.number('value', row), s.number('low', row), s.number('high', row), s.number('null', row)];
      return {
        model: s.text('model', row), x: x(row), row: this.label(row) || 'untransformed', value, low, high, null: chance,
        place: s.text('layer', row) ? shorten(s.text('layer', row), 60) : this.label(row),
        said: [number(value), interval(low, high)].filter(Boolean).join(' '),
        chance: chance === null ? '' : number(chance),
      };
    });
  }
}

// parameter is a number where the text is one.
function parameter(text: string): number | string {
  const v = Number(text);
  return text.trim() === '' || Number.isNaN(v) ? text : v;
}
