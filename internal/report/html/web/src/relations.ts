// Scatter charts of accuracy against a score, with a fitted line. The points are models on one data
// set, or data sets for one model.

import { chooser, segments } from './controls';
import type { Relation, Scores } from './data';
import { Figure } from './figure';
import type { Filter } from './filters';
import { number, shorten } from './format';
import { Legend } from './legend';
import { scatter } from './marks';
import { Series, type Dimension } from './series';
import type { State } from './state';

const views = { model: 'models', data: 'data sets' };

export class Relations {
  private readonly all: Relation[];
  private figure?: Figure;
  private readonly legend: Legend;

  constructor(
    private readonly root: HTMLElement,
    private readonly scores: Scores,
    private readonly state: State,
    private readonly filter: Filter,
    changed: () => void,
  ) {
    this.all = scores.packed.relations ?? [];
    this.legend = new Legend(filter, changed, (d, value) => state.set(`highlight.${d}`, value));
    this.part('legend').append(this.legend.root);
    const details = this.part('view') as HTMLDetailsElement;
    details.open ||= ['score', 'of', 'by', 'points'].some((k) => state.get(`relation.${k}`) !== '');
    details.addEventListener('toggle', () => this.update());
  }

  private part(name: string): HTMLElement {
    return this.root.querySelector<HTMLElement>(`.${name}`)!;
  }

  private choose(name: string, value: string): void {
    this.state.set(`relation.${name}`, value);
    this.update();
    this.part('controls')
      .querySelector<HTMLElement>(`select[name="${name}"], input[value="${CSS.escape(value)}"]`)
      ?.focus();
  }

  update(): void {
    if (!(this.part('view') as HTMLDetailsElement).open) return;
    const by =
      (['model', 'data'] as const).find(
        (b) => b === this.state.get('relation.points') && this.all.some((r) => r.by === b),
      ) ?? this.all[0].by;
    // by: what the points are. shared: the data set that they share if they are models, else the
    // model. In the state, relation.points holds the former, and relation.by the field for colours.
    const relations = this.all.filter((r) => r.by === by);
    const choices = [...new Set(relations.map((r) => r.of))],
      shared = choices.includes(this.state.get('relation.of')) ? this.state.get('relation.of') : choices[0];
    const found = relations.filter((r) => r.of === shared);
    const relation = found.find((r) => r.score === this.state.get('relation.score')) ?? found[0];
    // Tags are properties of models, such as their architecture, that a study gives.
    const tags = by === 'model' ? this.scores.tagNames() : [];
    const dimensions: Dimension[] = [by, ...tags.map((t): Dimension => `tag:${t}`)];
    // A tag with few values colours the points unless the reader chooses otherwise.
    const preferred = tags.find((t) => {
      const n = new Set(relation.chart.points.map((p) => this.scores.tagOf(t, p.label))).size;
      return n > 1 && n <= 6;
    });
    const dimension =
      dimensions.find((d) => d === this.state.get('relation.by')) ??
      (preferred ? (`tag:${preferred}` as Dimension) : by);
    const series = new Series(
      this.scores,
      dimension,
      this.scores,
      this.state.get(`highlight.${dimension}`),
    );
    const controls: HTMLElement[] = [];
    if (new Set(this.all.map((r) => r.by)).size > 1)
      controls.push(
        segments(
          'Points',
          Object.entries(views).map(([value, title]) => ({ value, title })),
          by,
          (v) => this.choose('points', v),
        ),
      );
    const lists: [string, string, { value: string; title: string }[], string][] = [
      [
        'score',
        'Score',
        found.map((r) => ({
          value: r.score,
          title: r.name,
        })),
        relation.score,
      ],
      [
        'of',
        by === 'model' ? 'Data' : 'Model',
        choices.map((s) => ({ value: s, title: shorten(s, 60) })),
        shared,
      ],
      [
        'by',
        'Colour',
        // A tag is titled without its prefix, tag:.
        dimensions.map((d) => ({ value: d, title: d === by ? 'none' : d.slice(4) })),
        dimension,
      ],
    ];
    for (const [name, title, options, chosen] of lists)
      if (options.length > 1)
        controls.push(chooser(title, name, options, chosen, (v) => this.choose(name, v)));
    this.part('controls').replaceChildren(...controls);
    this.draw(relation, series, dimension === by);
  }

  // draw shows a relation. plain: all points have one colour.
  private draw(relation: Relation, series: Series, plain: boolean): void {
    const { chart, by } = relation;
    const tag = plain ? '' : series.dimension.slice(4);
    const group = (label: string) => (plain ? series.values[0] : this.scores.tagOf(tag, label));
    const shown = chart.points.filter((p) => this.filter.passes({ [by]: p.label }));
    this.legend.update(series, new Set(plain ? [] : chart.points.map((p) => group(p.label))));
    this.figure?.remove();
    const columns: [string, string, (i: number) => string | number][] = [
      [by, by, (i) => shown[i].label],
      [tag, 'group', (i) => (plain ? '' : group(shown[i].label))],
      [chart.x, relation.score, (i) => shown[i].x],
      ['accuracy', 'accuracy.clean', (i) => shown[i].y],
      ['n', 'n', (i) => shown[i].n],
    ];
    const cell = (v: string | number) => (typeof v === 'string' ? v : number(v));
    this.figure = new Figure({
      title: chart.title,
      description: chart.title,
      wide: true,
      build: () => ({
        spec: shown.length === 0 ? undefined : scatter(chart, shown, series, group),
        text: relation.text,
      }),
      describe: (id) => columns.map(([title, , get]) => [title, cell(get(id))]),
      data: () => ({
        title: `Data of the chart: ${chart.title}`,
        rows: shown.map((_, i) => i),
        columns: columns
          .filter(([title]) => title !== '')
          .map(([title, , get]) => ({
            title,
            numeric: shown.length > 0 && typeof get(0) === 'number',
            cell: (i) => cell(get(i)),
            key: get,
          })),
        csv: (rows) => [
          columns.map(([, name]) => name),
          ...rows.map((i) => columns.map(([, , get]) => get(i))),
        ],
      }),
    });
    this.part('charts').replaceChildren(this.figure.root);
  }
}
