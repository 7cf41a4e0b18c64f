// Which classes lose accuracy or effective invariance under which transformation, and what is
// predicted for one of them.

import { conditionOf, onChosenValue, placeOf, sheetsShown, validOrFirst } from './chosenvalue';
import { Part } from './controls';
import type { ColourScale, SampleSheet, Scores, SheetModel } from './data';
import { Figure } from './figure';
import type { Filter } from './filters';
import { number } from './format';
import { heat, sized, tip } from './marks';
import type { State } from './state';
import { tableOf, textsOf, type Field } from './table';

// The keys are part of page addresses, see State.
const statistics = {
  drop: 'Loss of accuracy',
  share: 'Effective invariance',
};
type Statistic = keyof typeof statistics;

const maxRows = 24; // classes in the heat map
const maxPredicted = 6; // predicted classes in the bar chart; further ones share a bar

/** A tile of the heat map: a class under a transformation. */
interface Tile {
  id: number; // its index among all tiles
  class: string;
  transform: string;
  value: number; // of the statistic that is shown
  clean: number; // accuracy on the samples as they are
  moved: number; // and transformed
  mean: number; // effective invariance
  n: number; // number of samples
}

export class Classes extends Part {
  private readonly sheets: SampleSheet[];

  constructor(root: HTMLElement, scores: Scores, state: State, filter: Filter) {
    super(root, scores, state, filter, 'classes');
    this.sheets = (scores.packed.sheets ?? []).filter(hasClasses);
    this.folds(root.querySelector('details')!, ['statistic', 'data', 'model', 'class', 'transform']);
    onChosenValue(() => this.update());
  }

  update(): void {
    const { data, ofData } = sheetsShown(this.sheets, this.filter, this.asked('data'));
    const models = [...new Set(ofData.flatMap((s) => s.models.map((m) => m.model)))].filter((model) =>
      this.filter.passes({ model }),
    );
    this.root.hidden = this.sheets.length === 0;
    if (!this.root.querySelector('details')!.open) return;
    if (models.length === 0) {
      this.part('reading').textContent = this.scores.packed.notices.hidden;
      return this.showNothing('');
    }
    const model = validOrFirst(models, this.asked('model'));
    const statistic: Statistic = this.asked('statistic') === 'share' ? 'share' : 'drop';
    const all = this.tiles(ofData, model, statistic);
    const names = sorted(all, statistic);
    const chosen = validOrFirst(names, this.asked('class'));
    const sheet = ofData.find((s) => s.transform === this.asked('transform')) ?? worst(all, ofData, chosen, statistic);
    this.part('controls').replaceChildren(
      ...this.buttons('statistic', 'Statistic', Object.entries(statistics), statistic, 'drop'),
      ...this.list('data', 'Data', data, validOrFirst(data, this.asked('data'))),
      ...this.list('model', 'Model', models, model),
      ...this.list('class', 'Class', [...names].sort(), chosen),
      ...this.list('transform', 'Transformation', ofData.map((s) => s.transform), sheet.transform),
    );
    const values = new Map(ofData.map((s) => [s.transform, s.parameters[placeOf(this.state, s)]]));
    this.part('reading').textContent = reading(all, names, statistic, model, values);
    this.show([this.map(all, names, statistic, model), this.confusion(sheet, model, chosen)]);
  }

  // tiles are one for each class and transformation, at the chosen value of its parameter.
  private tiles(sheets: SampleSheet[], model: string, statistic: Statistic): Tile[] {
    return sheets.flatMap((sheet) => {
      const m = sheet.models.find((x) => x.model === model);
      if (!m) return [];
      const cleanCounts = new Map((m.by_class ?? []).map((c) => [c.class, c]));
      return (m.views[placeOf(this.state, sheet)].by_class ?? []).map((c) => {
        const clean = (cleanCounts.get(c.class)?.right ?? 0) / c.n,
          moved = c.right / c.n;
        return {
          class: sheet.classes![c.class],
          transform: sheet.transform,
          clean,
          moved,
          mean: c.mean,
          n: c.n,
          value: statistic === 'drop' ? clean - moved : c.mean,
        };
      });
    }).map((t, id) => ({ ...t, id }));
  }

  private map(all: Tile[], names: string[], statistic: Statistic, model: string): Figure {
    const rows = names.slice(0, maxRows);
    const drawn = all.filter((t) => rows.includes(t.class));
    const transforms = [...new Set(drawn.map((t) => t.transform))];
    const title = `${statistics[statistic]} by class and transformation, ${model}`;
    const scale = this.scores.packed.scales[statistic];
    const truncated = names.length > rows.length ? ` The ${rows.length} of ${names.length} classes that lose most are shown.` : '';
    return new Figure({
      title,
      description: title,
      build: () => ({
        spec: classMap(drawn, rows, transforms, scale),
        text: `The classes are sorted by their means over transformations.${truncated}`,
      }),
      describe: (id) => textsOf(fields, all[id]),
      data: () => tableOf(`Data of the chart: ${title}`, all, fields),
    });
  }

  // confusion draws the predictions for one class, as bars: a row of the confusion matrix.
  private confusion(sheet: SampleSheet, model: string, chosen: string): Figure {
    const m = sheet.models.find((x) => x.model === model)!,
      k = placeOf(this.state, sheet), // index of the chosen value of the parameter
      condition = conditionOf(sheet, k);
    const predictions = predicted(sheet, m, k, chosen);
    const title = `Predictions for ${chosen} under ${condition}, ${model}`;
    const views = ['as it is', `under ${condition}`];
    const rows = predictions.flatMap((p, i) => [
      { id: 2 * i, predicted: p.class, view: views[0], n: p.clean },
      { id: 2 * i + 1, predicted: p.class, view: views[1], n: p.moved },
    ]);
    const cells: Field<(typeof rows)[number]>[] = [
      ['predicted', (r) => r.predicted],
      ['samples', (r) => r.view],
      ['number', (r) => r.n, true],
    ];
    return new Figure({
      title,
      description: title,
      build: () => ({
        spec: rows.length > 0 ? bars(rows, predictions.map((p) => p.class), views) : undefined,
        text: `What ${model} predicts for the samples of ${chosen}, as they are and transformed.`,
      }),
      describe: (id) => textsOf(cells, rows[id]),
      data: () => tableOf(`Data of the chart: ${title}`, rows, cells),
    });
  }
}

const fields: Field<Tile>[] = [
  ['class', (t) => t.class],
  ['transformation', (t) => t.transform],
  ['accuracy as it is', (t) => t.clean],
  ['accuracy transformed', (t) => t.moved],
  ['loss', (t) => t.clean - t.moved],
  ['effective invariance', (t) => t.mean],
  ['n', (t) => t.n, true],
];

/** Whether a sheet has counts of classes. */
export function hasClasses(s: SampleSheet): boolean {
  return s.models.some((m) => (m.by_class ?? []).length > 1);
}

// sorted returns the names of the classes, by mean over transformations: the largest loss of
// accuracy, or the lowest effective invariance, comes first.
function sorted(all: Tile[], statistic: Statistic): string[] {
  const sums = new Map<string, { sum: number; n: number }>();
  for (const t of all) {
    const s = sums.get(t.class) ?? { sum: 0, n: 0 };
    sums.set(t.class, { sum: s.sum + t.value, n: s.n + 1 });
  }
  const sign = statistic === 'drop' ? -1 : 1;
  const mean = (c: string) => (sign * sums.get(c)!.sum) / sums.get(c)!.n;
  return [...sums.keys()].sort((a, b) => mean(a) - mean(b));
}

// worst returns the sheet of the transformation under which a class suffers most.
function worst(all: Tile[], sheets: SampleSheet[], name: string, statistic: Statistic): SampleSheet {
  const sign = statistic === 'drop' ? -1 : 1;
  const [first] = all
    .filter((t) => t.class === name)
    .sort((a, b) => sign * (a.value - b.value));
  return sheets.find((s) => s.transform === first?.transform) ?? sheets[0];
}

// reading returns a sentence on the worst tile.
function reading(
  all: Tile[],
  names: string[],
  statistic: Statistic,
  model: string,
  values: Map<string, string>, // chosen values of the parameters, by transformation
): string {
  const sign = statistic === 'drop' ? -1 : 1;
  const [first] = [...all].sort((a, b) => sign * (a.value - b.value));
  if (!first || names.length === 0) return '';
  const what =
    statistic === 'drop'
      ? `its accuracy is ${number(first.clean)} as it is and ${number(first.moved)} transformed`
      : `its effective invariance is ${number(first.mean)}`;
  return `For ${model}, ${first.class} suffers most, under ${[first.transform, values.get(first.transform)].filter(Boolean).join(' ')}: ${what} (${first.n} samples). Few samples of a class make its number uncertain.`;
}

// predicted counts the classes that a model predicts for the samples of one class, under value k of
// the parameter (moved) and without transformation (clean). The most frequent come first.
function predicted(sheet: SampleSheet, m: SheetModel, k: number, name: string) {
  const label = (sheet.classes ?? []).indexOf(name);
  const counts = new Map<number, { clean: number; moved: number }>();
  const add = (all: [number, number, number][] | undefined, side: 'clean' | 'moved') => {
    // of: the label; to: the predicted class; n: number of samples
    for (const [of, to, n] of all ?? []) {
      if (of !== label) continue;
      const c = counts.get(to) ?? { clean: 0, moved: 0 };
      c[side] += n;
      counts.set(to, c);
    }
  };
  add(m.confusion, 'clean');
  add(m.views[k].confusion, 'moved');
  const all = [...counts].sort(([, a], [, b]) => b.moved - a.moved || b.clean - a.clean);
  const out = all.slice(0, maxPredicted).map(([to, c]) => ({ class: sheet.classes![to], ...c }));
  const rest = all.slice(maxPredicted);
  if (rest.length > 0)
    out.push({
      class: `${rest.length} others`,
      clean: rest.reduce((sum, [, c]) => sum + c.clean, 0),
      moved: rest.reduce((sum, [, c]) => sum + c.moved, 0),
    });
  return out;
}

const axis = { domain: false, ticks: false, labelPadding: 5, labelLimit: 130 };

// classMap returns the specification of the heat map.
function classMap(drawn: Tile[], rows: string[], transforms: string[], scale: ColourScale) {
  const values = drawn.map((t) => ({ ...t, label: t.value.toFixed(2) }));
  const encoding = {
    x: {
      field: 'transform',
      type: 'ordinal',
      sort: transforms,
      title: null,
      axis: { ...axis, orient: 'top', labelAngle: transforms.length > 5 ? -40 : 0 },
    },
    y: { field: 'class', type: 'ordinal', sort: rows, title: null, axis },
  };
  return heat(values, encoding, scale, Math.max(40, 21 * rows.length), null, transforms.length <= 8);
}

// bars returns the Vega-Lite specification of the predictions: two bars for each predicted class.
function bars(
  values: { id: number; predicted: string; view: string; n: number }[],
  order: string[],
  views: string[],
) {
  const y = { field: 'predicted', type: 'nominal', sort: order, title: 'predicted', axis };
  return sized({
    data: { values },
    height: 40 * order.length,
    mark: { type: 'bar' },
    encoding: {
      y,
      yOffset: { field: 'view', type: 'nominal', sort: views },
      x: { field: 'n', type: 'quantitative', title: 'number of samples', axis: { tickMinStep: 1, tickCount: 5, domain: false } },
      color: {
        field: 'view',
        type: 'nominal',
        scale: { domain: views, range: ['var(--control)', 'var(--series-0)'] },
        legend: { orient: 'bottom', title: null },
      },
      tooltip: tip,
    },
  });
}
