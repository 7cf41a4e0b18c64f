// The section of one measure: what to look at, the charts of it, and the table of its scores.

import { bars, linesOf } from './charts/bars';
import { byParameter, depth } from './charts/curves';
import { distribution } from './charts/distribution';
import { heat, isGrid, mapOf, pairsOf } from './charts/heat';
import { tuning } from './charts/tuning';
import { units } from './charts/units';
import {
  fixed,
  layerEnds,
  listOf,
  named,
  offered,
  rowsOf,
  settled,
  varies,
  type Axis,
  type Context,
  type Drawn,
  type Fixed,
  type Kind,
  type Panel,
} from './charts/kind';
import { chooser, segments, type Option } from './controls';
import { Shown, type Measure, type Scores, type Statistic } from './data';
import { element } from './dom';
import { Figure } from './figure';
import type { Filter } from './filters';
import { shorten } from './format';
import { Legend } from './legend';
import { describe, overview, scoreSource, ScoreTable } from './scoretable';
import { byNumber, dimensionTitle, Series, type Dimension } from './series';
import type { State } from './state';

const kinds: Kind[] = [depth, bars, byParameter, heat, distribution, units, tuning];
const panelsAtOnce = 24;

export class Section {
  private readonly summarised: number[]; // rows, trials summarised
  private readonly offered: Kind[];
  private readonly table: ScoreTable;
  private readonly legend: Legend;
  private figures: Figure[] = [];
  private showing = panelsAtOnce;

  constructor(
    private readonly root: HTMLElement,
    private readonly scores: Scores,
    private readonly measure: Measure,
    private readonly rows: number[], // the measure's, all of them
    private readonly state: State,
    private readonly filter: Filter,
    changed: () => void, // when a filter of the whole report was set here
  ) {
    this.summarised = rows.filter((row) => scores.shown(row) >= Shown.trials);
    const suiting = kinds.filter((k) => k.suits(scores, measure, this.summarised));
    const first = isMatrix(scores, this.summarised) ? heat.name : measure.chart;
    this.offered = suiting.sort((a, b) => Number(b.name === first) - Number(a.name === first));
    this.legend = new Legend(filter, changed);
    this.part('legend').append(this.legend.root);
    const title = `Scores: ${root.querySelector('h2')!.textContent!}`;
    const details = overview(scores, rows).length < rows.length ? rows.length : 0;
    this.table = new ScoreTable(scores, title, state, measure.name, details);
    this.part('scores').append(this.table.root);
  }

  private part(name: string): HTMLElement {
    return this.root.querySelector<HTMLElement>(`.${name}`)!;
  }

  /** Shows what is chosen, in the report and here. */
  update(): void {
    const statistics = this.measure.statistics.filter((s) =>
      this.filter.shows(this.measure.name, s.name),
    );
    this.root.hidden = statistics.length === 0;
    if (this.root.hidden) return;
    this.table.update(this.filter.passing(this.rows));
    this.redraw();
  }

  private choice(name: string): string {
    return this.state.get(`${this.measure.name}.${name}`);
  }

  private choose(name: string, value: string): void {
    this.state.set(`${this.measure.name}.${name}`, value);
    this.showing = panelsAtOnce;
    const focused = document.activeElement as HTMLInputElement | null;
    const again = focused && this.part('controls').contains(focused) ? selectorOf(focused) : '';
    this.redraw();
    if (again) this.part('controls').querySelector<HTMLElement>(again)?.focus();
  }

  // redraw makes controls, legend and charts anew for what is chosen.
  private redraw(): void {
    const statistics = this.measure.statistics.filter((s) =>
      this.filter.shows(this.measure.name, s.name),
    );
    const statistic = statistics.find((s) => s.name === this.choice('statistic')) ?? statistics[0];
    const kind = this.offered.find((k) => k.name === this.choice('chart')) ?? this.offered[0];
    const of = this.summarised.filter(
      (row) => this.scores.text('statistic', row) === statistic.name,
    );
    const rows = this.filter.passing(of);
    const base = {
      scores: this.scores,
      measure: this.measure,
      statistic,
      rows,
      filter: this.filter,
      choice: (name: string) => this.choice(name),
    };
    const dimensions = kind ? this.dimensions(kind, of) : [];
    const dimension = dimensions.find((d) => d === this.choice('by')) ?? dimensions[0] ?? 'model';
    const context: Context = { ...base, series: new Series(this.scores, dimension) };
    this.controls(context, of, statistics, kind, dimensions);
    if (kind) this.charts(kind, context, of);
  }

  // dimensions are what the series of a chart can be: what has several values, and the tags of
  // models.
  private dimensions(kind: Kind, rows: number[]): Dimension[] {
    const columns = kind.by.filter((d) => d === 'model' || varies(this.scores, d as Axis, rows));
    if (this.measure.probes && kind === bars)
      // what one probe reads and another does not
      columns.sort((a, b) => Number(b === 'variant') - Number(a === 'variant'));
    const tags =
      kind.by.length > 1
        ? this.scores
            .tagNames()
            .filter((t) => new Set(rows.map((row) => this.scores.tag(t, row))).size > 1)
        : [];
    return [...columns, ...tags.map((t): Dimension => `tag:${t}`)];
  }

  private controls(
    c: Context,
    all: number[],
    statistics: Statistic[],
    kind: Kind | undefined,
    dimensions: Dimension[],
  ): void {
    const into = this.part('controls');
    const items: HTMLElement[] = [];
    const add = (name: string, title: string, options: Option[], chosen: string, least = 2) => {
      if (options.length >= least)
        items.push(chooser(title, name, options, chosen, (v) => this.choose(name, v)));
    };
    if (this.offered.length > 1) {
      items.push(
        segments(
          'Chart',
          this.offered.map((k) => ({ value: k.name, title: k.title })),
          kind!.name,
          (v) => this.choose('chart', v === this.offered[0].name ? '' : v),
        ),
      );
    }
    if (statistics.length > 1) {
      items.push(
        segments(
          'Statistic',
          statistics.map((s) => ({ value: s.name, title: s.name, about: s.about })),
          c.statistic.name,
          (v) => this.choose('statistic', v === this.measure.statistics[0].name ? '' : v),
        ),
      );
    }
    if (!kind || all.length === 0) {
      into.replaceChildren(...items);
      return;
    }
    const spread = c.rows.length > 0 ? kind.spread(c) : [];
    add(
      'by',
      'Colour',
      dimensions.map((d) => ({ value: d, title: dimensionTitle(d) })),
      c.series.dimension,
    );
    if (kind === depth)
      add(
        'x',
        'Depth',
        [
          { value: '', title: 'absolute' },
          { value: 'relative', title: 'relative' },
        ],
        this.choice('x'),
      );
    if (kind === bars)
      add(
        'lines',
        'Lines',
        linesOf(this.scores, this.measure, c.rows).map((a) => ({
          value: a,
          title: dimensionTitle(a as Dimension),
        })),
        spread[0] ?? '',
      );
    if (kind === heat)
      add(
        'map',
        'Tiles',
        pairsOf(this.scores, this.measure, c.rows).map((p) => ({ value: p.name, title: p.title })),
        mapOf(c),
      );
    const drawn = drawnBy(kind, c),
      free = new Set<string>([...spread, c.series.dimension]);
    for (const name of fixed) {
      if (free.has(name) || (name === 'layer' && (!this.measure.layered || kind === depth)))
        continue;
      add(
        name,
        fixedTitles[name],
        this.values(name, drawn, offered(c, drawn, name, free)),
        settled(c, drawn, name, free),
      );
    }
    into.replaceChildren(...items);
  }

  private values(name: Fixed, drawn: Drawn, all: string[]): Option[] {
    const values = all.filter((v) => v !== '' || name === 'variant' || name === 'data');
    if (name === 'parameter') values.sort(byNumber);
    const options = values.map((value) => ({ value, title: shorten(named(name, value), 60) }));
    if (name === 'layer')
      return [...Object.entries(layerEnds).map(([value, title]) => ({ value, title })), ...options];
    const each = name === 'factor' && drawn.rows && this.measure.probes && !all.includes('');
    const whole =
      name === 'parameter'
        ? drawn.rows
          ? 'mean'
          : 'all'
        : each
          ? 'each'
          : name === 'factor' && all.includes('')
            ? 'all samples'
            : '';
    return whole && values.length > 0 ? [{ value: '', title: whole }, ...options] : options;
  }

  private charts(kind: Kind, c: Context, all: number[]): void {
    const into = this.part('charts');
    // The page does not jump while charts are replaced.
    into.style.minHeight = `${into.offsetHeight}px`;
    for (const figure of this.figures) figure.remove();
    const panels = c.rows.length > 0 ? kind.panels(c) : [];
    const few = panels.slice(0, this.showing);
    this.figures = few.map((panel) => this.figure(kind, c, panel));
    into.replaceChildren(
      ...this.figures.map((f) => f.root),
      ...this.more(panels.length - few.length, kind, c, all),
    );
    if (panels.length === 0)
      into.append(
        element(
          'p',
          { class: 'none' },
          all.length > 0 && c.rows.length === 0
            ? 'The filters hide all scores.'
            : 'There are no scores for this choice.',
        ),
      );
    this.legend.update(c, all, kind);
    requestAnimationFrame(() => {
      into.style.minHeight = '';
    });
  }

  // factorOf is the one factor that a chart is of; '' where it shows several, or all samples.
  private factorOf(kind: Kind, c: Context): string {
    const free = new Set<string>([...kind.spread(c), c.series.dimension]);
    return free.has('factor') ? '' : settled(c, drawnBy(kind, c), 'factor', free);
  }

  private figure(kind: Kind, c: Context, panel: Panel): Figure {
    const factor = this.factorOf(kind, c);
    const shown =
      factor === '' || panel.title.includes(factor)
        ? panel.title
        : `${panel.title}, ${shorten(named('factor', factor), 40)}`;
    const title = `${c.statistic.title}, ${shown}`;
    return new Figure({
      title: shown,
      description: title,
      wide: panel.wide,
      build: panel.build,
      describe: panel.describe ?? ((row) => describe(this.scores, row)),
      data: () =>
        panel.source ?? scoreSource(this.scores, panel.rows, `Data of the chart: ${title}`),
    });
  }

  private more(left: number, kind: Kind, c: Context, all: number[]): HTMLElement[] {
    if (left <= 0) return [];
    const button = element(
      'button',
      { type: 'button', class: 'more' },
      `Show ${Math.min(left, panelsAtOnce)} of ${left} more`,
    );
    button.addEventListener('click', () => {
      this.showing += panelsAtOnce;
      this.charts(kind, c, all);
    });
    return [button];
  }
}

function drawnBy(kind: Kind, c: Context): Drawn {
  return kind.list ? listOf(kind.list(c)) : rowsOf(c);
}

// isMatrix reports whether scores are a matrix first of all: of layers by layers, or of factors, none
// of which stands for all, by transformations.
function isMatrix(scores: Scores, rows: number[]): boolean {
  return (
    isGrid(scores, rows) ||
    (varies(scores, 'factor', rows) &&
      varies(scores, 'transform', rows) &&
      rows.every((row) => scores.text('factor', row) !== ''))
  );
}

const fixedTitles = {
  data: 'Data',
  variant: 'Variant',
  parameter: 'Value of the parameter',
  factor: 'Class or factor',
  layer: 'Layer',
};

// selectorOf finds a control again after it was made anew.
function selectorOf(control: HTMLInputElement): string {
  if (control.tagName === 'SELECT') return `select[name="${control.name}"]`;
  return `input[value="${CSS.escape(control.value)}"]`;
}
