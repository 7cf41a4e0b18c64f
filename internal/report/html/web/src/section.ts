// The section of one measure: controls, legend, charts and the table of its scores. See chart.ts.

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
import { Part } from './controls';
import { Shown, type Chart, type Measure, type Scores, type Statistic, type Table } from './data';
import { button, element } from './dom';
import { Figure } from './figure';
import type { Filter } from './filters';
import { count, shorten } from './format';
import { Legend } from './legend';
import { layerOf, onLayer, toggleLayer } from './layer';
import { drawing, isMarked, markedAt } from './marks';
import { describe, overview, sourceOf, ScoreTable } from './scoretable';
import { byNumber, dimensionTitle, Series, type Dimension } from './series';
import type { State } from './state';

const panelsPerStep = 24; // shown at first, and added by each click on the button

export class Section extends Part {
  // By table, the rows of the measure that are not single trials of several.
  private readonly summarised: Record<string, number[]> = {};
  private readonly charts: Chart[];
  private readonly table: ScoreTable;
  private readonly legend: Legend;
  private showing = panelsPerStep; // largest number of panels that are shown
  private atLayer = false; // whether the charts show one layer, which the reader can choose

  constructor(
    root: HTMLElement,
    scores: Scores,
    private readonly measure: Measure,
    private readonly rows: number[], // all rows of the measure
    state: State,
    filter: Filter,
    changed: () => void, // called when the legend has set a filter of the whole report
  ) {
    super(root, scores, state, filter, measure.key, '');
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
    // The number of rows that the table offers to show in full, if an overview leaves some out.
    const detailed = overview(scores, rows).length < rows.length ? rows.length : 0;
    this.table = new ScoreTable(scores, title, state, measure.key, detailed);
    const details = this.part('scores') as HTMLDetailsElement;
    details.append(this.table.root);
    // The table is open if the address has a search, an order or all rows of it.
    details.open = ['find', 'sort', 'every'].some((k) => state.get(`${measure.key}.${k}`) !== '');
    details.addEventListener('toggle', () => {
      this.fill();
    });
    onLayer(() => {
      if (this.atLayer && !this.root.hidden) this.redraw();
    });
  }

  /** Draws the section again, according to the filters of the report and the choices here. */
  update(): void {
    this.root.hidden = this.statistics.length === 0;
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

  // statistics returns those that the filters show.
  private get statistics(): Statistic[] {
    return this.measure.statistics.filter((s) => this.filter.shows(this.measure.key, s.name));
  }

  protected choose(name: string, value: string, stored = value): void {
    this.showing = panelsPerStep;
    super.choose(name, value, stored);
  }

  // redraw replaces controls, legend and charts according to the reader's choices.
  protected redraw(): void {
    const { statistics } = this;
    const statistic = statistics.find((s) => s.name === this.asked('statistic')) ?? statistics[0];
    const chart = this.charts.find((k) => k.name === this.asked('chart')) ?? this.charts[0];
    if (!chart) {
      this.part('controls').replaceChildren(...this.choices(statistics, statistic));
      return;
    }
    const table = this.scores.tables[chart.table];
    const all = this.summarised[chart.table].filter(
      (row) => !table.has('statistic') || table.text('statistic', row) === statistic.name,
    );
    const dimensions = this.dimensions(chart, all);
    const dimension = dimensions.find((d) => d === this.asked('by')) ?? dimensions[0] ?? '';
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
      choice: (name: string) => this.asked(name),
      chosenValue: (transform: string) => chosenValue(this.state, transform),
      layer: () => layerOf(this.state),
    };
    this.part('controls').replaceChildren(
      ...this.choices(statistics, statistic, chart),
      ...(all.length > 0 ? this.controls(context, dimensions) : []),
    );
    this.draw(context, all);
  }

  // dimensions returns those of a chart that have several values: fields and tags of models.
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

  // choices returns the controls for the kind of chart and the statistic.
  private choices(statistics: Statistic[], statistic: Statistic, chart?: Chart): HTMLElement[] {
    const charts = chart ? this.charts : [];
    return [
      ...this.buttons('chart', 'Chart', charts.map((k) => [k.name, k.title]), chart?.name ?? '', charts[0]?.name),
      ...this.buttons(
        'statistic',
        'Statistic',
        statistics.map((s) => [s.name, s.name, s.about]),
        statistic.name,
        this.measure.statistics[0].name,
      ),
    ];
  }

  // controls returns the controls for the fields of a chart.
  private controls(c: Context, dimensions: Dimension[]): HTMLElement[] {
    const title = (f: string) => dimensionTitle(this.scores, f);
    const { chart } = c;
    const items = this.list('by', 'Colour', dimensions.map((d) => [d, title(d)]), c.series.dimension);
    if (chart.relative)
      items.push(...this.list('x', 'Depth', ['absolute', 'relative'], isRelative(c) ? 'relative' : 'absolute'));
    const axes = sides(c); // of tiles, or of the lines of bars
    if (axes)
      items.push(
        ...this.list(
          sidesKey(chart),
          chart.mark === 'bar' ? 'Lines' : 'Tiles',
          sidesOffered(c).map((s) => [
            sidesName(s),
            s.across ? `${title(s.down)} by ${title(s.across)}` : title(s.down),
          ]),
          sidesName(axes),
        ),
      );
    const shown = shownBy(c);
    this.atLayer = this.measure.layered && !shown.has('layer');
    for (const name of fixed)
      if (!shown.has(name) && (name !== 'layer' || this.measure.layered))
        items.push(
          ...this.list(
            name,
            fixedTitles[name],
            this.values(c, name, offered(c, name, shown)),
            settled(c, name, shown),
          ),
        );
    return items;
  }

  // values returns the options of the control that fixes a field to one of its values.
  private values(c: Context, name: Fixed, all: string[]): [string, string][] {
    const values = all.filter((v) => v !== '' || name === 'variant' || name === 'data');
    if (name === 'parameter') values.sort(byNumber);
    const options: [string, string][] =
      name === 'parameter' && listed(c).length > 1
        ? this.valuesOfEach(c)
        : values.map((value) => [value, named(c, name, value, 60)]);
    if (name === 'layer') return [...Object.entries(layerEnds), ...options];
    const each = name === 'factor' && sideBySide(c) && !all.includes('');
    // The title of the option that fixes no value: the mean over them, all, or a panel for each.
    const unfixed =
      name === 'parameter'
        ? c.table === this.scores
          ? 'mean'
          : 'all'
        : each
          ? 'each'
          : name === 'factor' && all.includes('')
            ? 'all samples'
            : '';
    return unfixed && values.length > 0 ? [['', unfixed], ...options] : options;
  }

  // valuesOfEach returns options for the parameters of several transformations: name and value.
  private valuesOfEach(c: Context): [string, string][] {
    return listed(c).flatMap((transform) => {
      const of = c.rows.filter((row) => c.table.text('transform', row) === transform);
      return c.table
        .distinct('parameter', of)
        .filter((v) => v !== '')
        .sort(byNumber)
        .map((v): [string, string] => [`${transform}=${v}`, `${shorten(transform, 40)} ${v}`]);
    });
  }

  // draw replaces the charts and the legend. all are the rows of the statistic before filters.
  private draw(c: Context, all: number[]): void {
    const container = this.part('charts');
    // The page does not jump while charts are replaced.
    container.style.minHeight = `${container.offsetHeight}px`;
    const allPanels = c.rows.length > 0 ? panels(c) : [];
    const shown = allPanels.slice(0, this.showing);
    const domain = c.chart.common && allPanels.length > 1 ? this.common(c, allPanels) : undefined;
    const wide = c.chart.wide || (c.chart.mark === 'bar' && allPanels.length === 1);
    this.part('reading').textContent = '';
    container.classList.toggle('several', allPanels.length > 1);
    this.show(
      shown.map((panel) => this.figure(c, panel, wide, domain)),
      ...this.more(allPanels.length - shown.length, c, all),
    );
    if (allPanels.length === 0)
      container.append(
        element(
          'p',
          { class: 'none' },
          this.scores.packed.notices[all.length > 0 && c.rows.length === 0 ? 'hidden' : 'none'],
        ),
      );
    const legend = c.chart.legend === 'page'; // not in the chart itself
    this.legend.update(
      c.series,
      new Set(legend ? all.map((row) => c.series.of(row)) : []),
      legend && all.some((row) => c.table.number('null', row) !== null) ? c.chart.null : '',
    );
    requestAnimationFrame(() => {
      container.style.minHeight = '';
    });
  }

  // common returns the range that the axes of all panels share, so that readers can compare them.
  // It returns none for statistics without an upper bound, whose units may differ between factors.
  private common(c: Context, allPanels: Panel[]): [number, number] | undefined {
    if (c.statistic.range[1] === null) return undefined;
    const ends = allPanels
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
        // The section has one text on how to read its charts: the longest of theirs.
        if (drawn.reading.length > reading.textContent!.length) reading.textContent = drawn.reading;
        return drawn;
      },
      describe: (row) => describe(c.table, row),
      follow: isMarked(c)
        ? (mark) => {
            const update = () => mark(markedAt(c, panel.rows));
            const unsubscribe = [onChosenValue(update), onLayer(update)];
            return () => unsubscribe.forEach((stop) => stop());
          }
        : undefined,
      choose:
        isMarked(c) && c.chart.x.field === 'depth'
          ? (row) => toggleLayer(this.state, this.scores, layerOfRow(c.table, row))
          : undefined,
      data: () => sourceOf(c.table, panel.rows, `Data of the chart: ${title}`),
    });
  }

  // more returns a button that shows more panels, if some are left.
  private more(left: number, c: Context, all: number[]): HTMLElement[] {
    if (left <= 0) return [];
    const show = () => {
      this.showing += panelsPerStep;
      this.draw(c, all);
    };
    return [button(show, { class: 'more' }, `Show ${Math.min(left, panelsPerStep)} of ${left} more`)];
  }
}

// Titles of the controls that fix a field to one value.
const fixedTitles = {
  data: 'Data',
  variant: 'Variant',
  parameter: 'Value of the parameter',
  factor: 'Class or factor',
  layer: 'Layer',
};

const layerOfRow = (t: Table, row: number) => ({ model: t.text('model', row), layer: t.text('layer', row) });
