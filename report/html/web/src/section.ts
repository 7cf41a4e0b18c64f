// The section of one measure: what to look at, the charts of it, and the table of its scores.

import {
  fixed,
  isRelative,
  layerEnds,
  listed,
  named,
  offered,
  panels,
  settled,
  shownBy,
  sideBySide,
  sides,
  sidesKey,
  sidesName,
  sidesOffered,
  type Context,
  type Fixed,
  type Panel,
} from './chart';
import { chosenValue, onChosenValue } from './chosenvalue';
import { chooser, segments, type Option } from './controls';
import { Shown, type Chart, type Measure, type Scores, type Statistic, type Table } from './data';
import { element } from './dom';
import { Figure } from './figure';
import type { Filter } from './filters';
import { count, shorten } from './format';
import { Legend } from './legend';
import { layerOf, onLayer, toggleLayer } from './layer';
import { drawing, isMarked, markedAt } from './marks';
import { describe, overview, sourceOf, ScoreTable } from './scoretable';
import { byNumber, dimensionTitle, Series, type Dimension } from './series';
import type { State } from './state';

const panelsAtOnce = 24;

export class Section {
  private readonly summarised: Record<string, number[]> = {}; // by table; trials summarised
  private readonly charts: Chart[];
  private readonly table: ScoreTable;
  private readonly legend: Legend;
  private figures: Figure[] = [];
  private showing = panelsAtOnce;
  private atLayer = false; // whether the charts show one layer

  constructor(
    private readonly root: HTMLElement,
    private readonly scores: Scores,
    private readonly measure: Measure,
    private readonly rows: number[], // the measure's, all of them
    private readonly state: State,
    private readonly filter: Filter,
    changed: () => void, // when a filter of the whole report was set here
  ) {
    this.charts = measure.charts ?? [];
    for (const { table } of this.charts) {
      const t = scores.tables[table];
      this.summarised[table] ??= (
        t === scores ? rows : (t.bySection().get(measure.key) ?? [])
      ).filter((row) => t.shown(row) >= Shown.trials);
    }
    this.legend = new Legend(filter, changed, (d, value) => state.set(`highlight.${d}`, value));
    this.part('legend').append(this.legend.root);
    const title = `Scores: ${root.querySelector('h2')!.textContent!}`;
    const details = overview(scores, rows).length < rows.length ? rows.length : 0;
    this.table = new ScoreTable(scores, title, state, measure.key, details);
    const folded = this.part('scores') as HTMLDetailsElement;
    folded.append(this.table.root);
    folded.open = ['find', 'sort', 'every'].some((k) => state.get(`${measure.key}.${k}`) !== '');
    folded.addEventListener('toggle', () => {
      this.fill();
    });
    onLayer(() => {
      if (this.atLayer && !this.root.hidden) this.redraw();
    });
  }

  private part(name: string): HTMLElement {
    return this.root.querySelector<HTMLElement>(`.${name}`)!;
  }

  /** Shows what is chosen, in the report and here. */
  update(): void {
    const statistics = this.measure.statistics.filter((s) =>
      this.filter.shows(this.measure.key, s.name),
    );
    this.root.hidden = statistics.length === 0;
    if (this.root.hidden) return;
    this.fill();
    this.redraw();
  }

  // fill shows the rows of the table if it is open.
  private fill(): void {
    const passing = this.filter.passing(this.rows);
    this.part('scores').querySelector('summary')!.textContent =
      `Table of ${count(passing.length)} ${passing.length === 1 ? 'score' : 'scores'}`;
    if ((this.part('scores') as HTMLDetailsElement).open) this.table.update(passing);
  }

  private choice(name: string): string {
    return this.state.get(`${this.measure.key}.${name}`);
  }

  private choose(name: string, value: string): void {
    this.state.set(`${this.measure.key}.${name}`, value);
    this.showing = panelsAtOnce;
    const focused = document.activeElement as HTMLInputElement | null;
    const again = focused && this.part('controls').contains(focused) ? selectorOf(focused) : '';
    this.redraw();
    if (again) this.part('controls').querySelector<HTMLElement>(again)?.focus();
  }

  // redraw replaces controls, legend and charts according to the reader's choices.
  private redraw(): void {
    const statistics = this.measure.statistics.filter((s) =>
      this.filter.shows(this.measure.key, s.name),
    );
    const statistic = statistics.find((s) => s.name === this.choice('statistic')) ?? statistics[0];
    const chart = this.charts.find((k) => k.name === this.choice('chart')) ?? this.charts[0];
    if (!chart) {
      this.part('controls').replaceChildren(...this.choices(statistics, statistic));
      return;
    }
    const table = this.scores.tables[chart.table];
    const all = this.summarised[chart.table].filter(
      (row) => !table.has('statistic') || table.text('statistic', row) === statistic.name,
    );
    const dimensions = this.dimensions(chart, all);
    const dimension = dimensions.find((d) => d === this.choice('by')) ?? dimensions[0] ?? '';
    const context: Context = {
      scores: this.scores,
      table,
      chart,
      measure: this.measure,
      statistic,
      rows: this.filter.passing(all, table),
      series: new Series(
        this.scores,
        dimension,
        table,
        this.state.get(`highlight.${dimension}`),
      ),
      choice: (name: string) => this.choice(name),
      chosenValue: (transform: string) => chosenValue(this.state, transform),
      layer: () => layerOf(this.state),
    };
    this.part('controls').replaceChildren(
      ...this.choices(statistics, statistic, chart),
      ...(all.length > 0 ? this.controls(context, dimensions) : []),
    );
    this.draw(context, all);
  }

  // dimensions are what the series of a chart can be: what has several values, and the tags of
  // models.
  private dimensions(chart: Chart, rows: number[]): Dimension[] {
    const table = this.scores.tables[chart.table],
      fields = chart.colour ?? [];
    const tags = fields.length > 1 ? this.scores.tagNames() : [];
    return [
      ...fields.filter((f) => f === 'model' || fields.length === 1 || table.varies(f, rows)),
      ...tags
        .filter((t) => new Set(rows.map((row) => this.scores.tag(t, row, table))).size > 1)
        .map((t) => `tag:${t}`),
    ];
  }

  // choices are the controls of charts and statistics.
  private choices(statistics: Statistic[], statistic: Statistic, chart?: Chart): HTMLElement[] {
    const items: HTMLElement[] = [];
    if (chart && this.charts.length > 1)
      items.push(
        segments(
          'Chart',
          this.charts.map((k) => ({ value: k.name, title: k.title })),
          chart.name,
          (v) => this.choose('chart', v === this.charts[0].name ? '' : v),
        ),
      );
    if (statistics.length > 1)
      items.push(
        segments(
          'Statistic',
          statistics.map((s) => ({ value: s.name, title: s.name, about: s.about })),
          statistic.name,
          (v) => this.choose('statistic', v === this.measure.statistics[0].name ? '' : v),
        ),
      );
    return items;
  }

  // controls are those of the fields of a chart.
  private controls(c: Context, dimensions: Dimension[]): HTMLElement[] {
    const items: HTMLElement[] = [];
    const title = (f: string) => dimensionTitle(this.scores, f);
    const add = (name: string, label: string, options: Option[], chosen: string) => {
      if (options.length >= 2)
        items.push(chooser(label, name, options, chosen, (v) => this.choose(name, v)));
    };
    const { chart } = c;
    add(
      'by',
      'Colour',
      dimensions.map((d) => ({ value: d, title: title(d) })),
      c.series.dimension,
    );
    if (chart.relative)
      add(
        'x',
        'Depth',
        [
          { value: 'absolute', title: 'absolute' },
          { value: 'relative', title: 'relative' },
        ],
        isRelative(c) ? 'relative' : 'absolute',
      );
    const at = sides(c);
    if (at)
      add(
        sidesKey(chart),
        chart.mark === 'bar' ? 'Lines' : 'Tiles',
        sidesOffered(c).map((s) => ({
          value: sidesName(s),
          title: s.across ? `${title(s.down)} by ${title(s.across)}` : title(s.down),
        })),
        sidesName(at),
      );
    const shown = shownBy(c);
    this.atLayer = this.measure.layered && !shown.has('layer');
    for (const name of fixed)
      if (!shown.has(name) && (name !== 'layer' || this.measure.layered))
        add(
          name,
          fixedTitles[name],
          this.values(c, name, offered(c, name, shown)),
          settled(c, name, shown),
        );
    return items;
  }

  private values(c: Context, name: Fixed, all: string[]): Option[] {
    const values = all.filter((v) => v !== '' || name === 'variant' || name === 'data');
    if (name === 'parameter') values.sort(byNumber);
    const options =
      name === 'parameter' && listed(c).length > 1
        ? this.valuesOfEach(c)
        : values.map((value) => ({ value, title: named(c, name, value, 60) }));
    if (name === 'layer')
      return [...Object.entries(layerEnds).map(([value, title]) => ({ value, title })), ...options];
    const each = name === 'factor' && sideBySide(c) && !all.includes('');
    // whole is the name of the choice of no value.
    const whole =
      name === 'parameter'
        ? c.table === this.scores
          ? 'mean'
          : 'all'
        : each
          ? 'each'
          : name === 'factor' && all.includes('')
            ? 'all samples'
            : '';
    return whole && values.length > 0 ? [{ value: '', title: whole }, ...options] : options;
  }

  // valuesOfEach are the values of the parameters of several transformations, each under its name.
  private valuesOfEach(c: Context): Option[] {
    return listed(c).flatMap((transform) => {
      const of = c.rows.filter((row) => c.table.text('transform', row) === transform);
      return c.table
        .distinct('parameter', of)
        .filter((v) => v !== '')
        .sort(byNumber)
        .map((v) => ({ value: `${transform}=${v}`, title: `${shorten(transform, 40)} ${v}` }));
    });
  }

  private draw(c: Context, all: number[]): void {
    const into = this.part('charts');
    // The page does not jump while charts are replaced.
    into.style.minHeight = `${into.offsetHeight}px`;
    for (const figure of this.figures) figure.remove();
    const every = c.rows.length > 0 ? panels(c) : [];
    const few = every.slice(0, this.showing);
    const domain = c.chart.common && every.length > 1 ? this.common(c, every) : undefined;
    const wide = c.chart.wide || (c.chart.mark === 'bar' && every.length === 1);
    this.part('reading').textContent = '';
    into.classList.toggle('several', every.length > 1);
    this.figures = few.map((panel) => this.figure(c, panel, wide, domain));
    into.replaceChildren(
      ...this.figures.map((f) => f.root),
      ...this.more(every.length - few.length, c, all),
    );
    if (every.length === 0)
      into.append(
        element(
          'p',
          { class: 'none' },
          this.scores.packed.notices[all.length > 0 && c.rows.length === 0 ? 'hidden' : 'none'],
        ),
      );
    const legend = c.chart.legend === 'page';
    this.legend.update(
      c.series,
      new Set(legend ? all.map((row) => c.series.of(row)) : []),
      legend && all.some((row) => c.table.number('null', row) !== null) ? c.chart.null : '',
    );
    requestAnimationFrame(() => {
      into.style.minHeight = '';
    });
  }

  // common is the range of values of panels that are to be compared; none for numbers without an
  // upper bound, whose units may differ from factor to factor.
  private common(c: Context, every: Panel[]): [number, number] | undefined {
    if (c.statistic.range[1] === null) return undefined;
    const ends = every
      .flatMap((p) => p.rows)
      .flatMap((row) =>
        ['value', 'low', 'high', 'null'].map((name) => c.table.number(name, row) ?? 0),
      );
    return [Math.min(0, ...ends), Math.max(0, ...ends)];
  }

  private figure(c: Context, panel: Panel, wide: boolean, domain?: [number, number]): Figure {
    const title = `${c.statistic.title}, ${panel.title}`;
    return new Figure({
      title: panel.title,
      description: title,
      wide,
      build: () => {
        const drawn = drawing(c, panel.rows, domain),
          reading = this.part('reading');
        if (drawn.reading.length > reading.textContent!.length) reading.textContent = drawn.reading;
        return drawn;
      },
      describe: (row) => describe(c.table, row),
      follow: isMarked(c)
        ? (mark) => {
            const move = () => mark(markedAt(c, panel.rows));
            const leave = [onChosenValue(move), onLayer(move)];
            return () => leave.forEach((stop) => stop());
          }
        : undefined,
      choose:
        isMarked(c) && c.chart.x.field === 'depth'
          ? (row) => toggleLayer(this.state, this.scores, chosenAt(c.table, row))
          : undefined,
      data: () => sourceOf(c.table, panel.rows, `Data of the chart: ${title}`),
    });
  }

  private more(left: number, c: Context, all: number[]): HTMLElement[] {
    if (left <= 0) return [];
    const button = element(
      'button',
      { type: 'button', class: 'more' },
      `Show ${Math.min(left, panelsAtOnce)} of ${left} more`,
    );
    button.addEventListener('click', () => {
      this.showing += panelsAtOnce;
      this.draw(c, all);
    });
    return [button];
  }
}

const fixedTitles = {
  data: 'Data',
  variant: 'Variant',
  parameter: 'Value of the parameter',
  factor: 'Class or factor',
  layer: 'Layer',
};

// chosenAt is the layer of a row.
const chosenAt = (t: Table, row: number) => ({ model: t.text('model', row), layer: t.text('layer', row) });

// selectorOf is a CSS selector that finds a control again after it was replaced.
function selectorOf(control: HTMLInputElement): string {
  if (control.tagName === 'SELECT') return `select[name="${control.name}"]`;
  return `input[value="${CSS.escape(control.value)}"]`;
}
