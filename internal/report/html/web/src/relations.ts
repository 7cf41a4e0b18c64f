// Scatter charts of accuracy against a score, with a fitted line. The points are models on one data
// set, or data sets for one model.

import { validOrFirst } from './chosenvalue';
import { Part } from './controls';
import type { Relation, ScatterPoint, Scores } from './data';
import { Figure } from './figure';
import type { Filter } from './filters';
import { Legend } from './legend';
import { scatter } from './marks';
import { Series, type Dimension } from './series';
import type { State } from './state';
import { tableOf, textsOf, type Field } from './table';

const views = { model: 'models', data: 'data sets' };

export class Relations extends Part {
  private readonly all: Relation[];
  private readonly legend: Legend;

  constructor(root: HTMLElement, scores: Scores, state: State, filter: Filter, changed: () => void) {
    super(root, scores, state, filter, 'relation', '');
    this.all = scores.packed.relations ?? [];
    this.legend = new Legend(filter, changed, (d, value) => state.set(`highlight.${d}`, value));
    this.part('legend').append(this.legend.root);
    this.folds(this.part('view') as HTMLDetailsElement, ['score', 'of', 'by', 'points']);
  }

  update(): void {
    if (!(this.part('view') as HTMLDetailsElement).open) return;
    const kinds = [...new Set(this.all.map((r) => r.by))];
    const by = validOrFirst(kinds, this.asked('points')) as Relation['by'];
    // by: what the points are. shared: the data set that they share if they are models, else the
    // model. In the state, relation.points holds the former, and relation.by the field for colours.
    const relations = this.all.filter((r) => r.by === by);
    const choices = [...new Set(relations.map((r) => r.of))],
      shared = validOrFirst(choices, this.asked('of'));
    const found = relations.filter((r) => r.of === shared);
    const relation = found.find((r) => r.score === this.asked('score')) ?? found[0];
    // Tags are properties of models, such as their architecture, that a study gives.
    const tags = by === 'model' ? this.scores.tagNames() : [];
    const dimensions: Dimension[] = [by, ...tags.map((t): Dimension => `tag:${t}`)];
    // A tag with few values colours the points unless the reader chooses otherwise.
    const preferred = tags.find((t) => {
      const n = new Set(relation.chart.points.map((p) => this.scores.tagOf(t, p.label))).size;
      return n > 1 && n <= 6;
    });
    const dimension =
      dimensions.find((d) => d === this.asked('by')) ??
      (preferred ? (`tag:${preferred}` as Dimension) : by);
    const series = new Series(
      this.scores,
      dimension,
      this.scores,
      this.state.get(`highlight.${dimension}`),
    );
    const points = (['model', 'data'] as const).filter((k) => kinds.includes(k));
    this.part('controls').replaceChildren(
      ...this.buttons('points', 'Points', points.map((k) => [k, views[k]]), by),
      ...this.list('score', 'Score', found.map((r) => [r.score, r.name]), relation.score),
      ...this.list('of', by === 'model' ? 'Data' : 'Model', choices, shared),
      // A tag is titled without its prefix, tag:.
      ...this.list('by', 'Colour', dimensions.map((d) => [d, d === by ? 'none' : d.slice(4)]), dimension),
    );
    this.draw(relation, series, dimension === by);
  }

  // draw shows a relation. plain: all points have one colour.
  private draw(relation: Relation, series: Series, plain: boolean): void {
    const { chart, by } = relation;
    const tag = plain ? '' : series.dimension.slice(4);
    const group = (label: string) => (plain ? series.values[0] : this.scores.tagOf(tag, label));
    const shown = chart.points.filter((p) => this.filter.passes({ [by]: p.label }));
    this.legend.update(series, new Set(plain ? [] : chart.points.map((p) => group(p.label))));
    const fields: Field<ScatterPoint>[] = [
      [by, (p) => p.label],
      [tag, (p) => (plain ? '' : group(p.label))],
      [chart.x, (p) => p.x],
      ['accuracy', (p) => p.y],
      ['n', (p) => p.n],
    ];
    const names = [by, 'group', relation.score, 'accuracy.clean', 'n']; // of the columns of CSV files
    const figure = new Figure({
      title: chart.title,
      description: chart.title,
      wide: true,
      build: () => ({
        spec: shown.length === 0 ? undefined : scatter(chart, shown, series, group),
        text: relation.text,
      }),
      describe: (id) => textsOf(fields, shown[id]),
      data: () => ({
        ...tableOf(`Data of the chart: ${chart.title}`, shown, fields.filter(([title]) => title !== '')),
        csv: (rows) => [names, ...rows.map((i) => fields.map(([, value]) => value(shown[i])))],
      }),
    });
    this.show([figure]);
  }
}
