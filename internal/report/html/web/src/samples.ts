// The samples that a transformation changes most and least, as pairs of images with the predictions
// of a model, and those that one model classifies correctly and another does not.

import { conditionOf, placeOf, sheetsShown, slider } from './chosenvalue';
import { Part } from './controls';
import type { SampleSheet, Scores, SheetModel } from './data';
import { button, element, node } from './dom';
import { Figure } from './figure';
import type { Filter } from './filters';
import { number, shorten } from './format';
import type { Drawable } from './save';
import { playButton } from './sounds';
import type { State } from './state';
import { tableOf, type Field } from './table';
import { hasImages, tile } from './tiles';

// Which samples are shown. The keys are part of page addresses, see State.
const kinds = {
  fails: 'Right, then wrong',
  most: 'Changed most',
  least: 'Changed least',
  parts: 'Models differ',
  all: 'All shown',
};
type Kind = keyof typeof kinds;

// Filters by the prediction for the transformed sample; '' for none.
const outcomes: Record<string, [title: string, holds: (c: Card) => boolean]> = {
  '': ['all', () => true],
  right: ['right', (c) => c.rightAfter === true],
  wrong: ['wrong', (c) => c.rightAfter === false],
  changed: ['changed', (c) => c.before !== c.after],
};

const cardsPerStep = 10; // shown at first, and added by each click on the button

/** A model's predictions of a sample, as it is and under the chosen value. */
interface Card {
  line: number; // index in sheet.samples, and the line of its images among the tiles
  name: string; // of the sample
  label: string; // its class; '' where it is not known
  before: string; // predicted class of the sample as it is
  after: string; // and transformed
  confidenceBefore: number | null; // probability of the predicted class; null if not known
  confidenceAfter: number | null;
  value: number; // of the sheet's statistic
  rightBefore: boolean | null; // null where the label is not known
  rightAfter: boolean | null;
}

export class Samples extends Part {
  private readonly sheets: SampleSheet[];
  private fill = () => {}; // shows the cards again

  constructor(root: HTMLElement, scores: Scores, state: State, filter: Filter) {
    super(root, scores, state, filter, 'samples');
    this.sheets = scores.packed.sheets ?? [];
  }

  update(): void {
    const { data, ofData } = sheetsShown(this.sheets, this.filter, this.asked('data'));
    // A report opens with failures: of the transformation and the model that have most.
    const failed = (models: SheetModel[]) => Math.max(0, ...models.flatMap((m) => m.views.map((v) => v.failed)));
    const sheet =
      ofData.find((s) => s.transform === this.asked('transform')) ??
      [...ofData].sort((a, b) => failed(b.models) - failed(a.models))[0];
    const models = sheet?.models.filter((m) => this.filter.passes({ model: m.model })) ?? [];
    const model =
      models.find((m) => m.model === this.asked('model')) ??
      [...models].sort((a, b) => failed([b]) - failed([a]))[0];
    this.root.hidden = this.sheets.length === 0;
    if (!sheet || !model) {
      this.part('reading').textContent = this.scores.packed.notices.hidden;
      return this.showNothing('');
    }
    const available = this.kinds(sheet, model, models);
    const kind = available.find((k) => k === this.asked('show')) ?? available[0];
    const others = models.filter((m) => m !== model && this.parting(sheet, model, m));
    const other = others.find((m) => m.model === this.asked('other')) ?? others[0];
    const labels = [...new Set(sheet.samples.map((s) => s.label))].filter((l) => l >= 0);
    const label = labels.find((l) => sheet.classes![l] === this.asked('class')) ?? -1;
    const classes = labels.map((l) => sheet.classes![l]).sort();
    const outcome = kind === 'all' && Object.hasOwn(outcomes, this.asked('outcome')) ? this.asked('outcome') : '';
    const offered = Object.entries(outcomes).filter(
      ([value]) => labels.length > 0 || value === '' || value === 'changed',
    );
    this.part('controls').replaceChildren(
      ...this.buttons('show', 'Show', available.map((k) => [k, kinds[k]]), kind),
      ...this.list('data', 'Data', data, sheet.data),
      ...this.list('transform', 'Transformation', ofData.map((s) => s.transform), sheet.transform),
      ...this.list('model', 'Model', models.map((m) => m.model), model.model),
      ...(kind === 'parts' ? this.list('other', 'Wrong in', others.map((m) => m.model), other.model) : []),
      ...this.list('class', 'Class', classes.length > 0 ? [['', 'all'], ...classes] : [], label < 0 ? '' : sheet.classes![label]),
      ...(kind === 'all' && model.clean
        ? this.list('outcome', 'Prediction', offered.map(([value, [title]]) => [value, title]), outcome)
        : []),
      ...slider(this.scores, this.state, sheet, () => this.fill()),
    );
    this.draw(sheet, model, kind, other, label, outcome);
  }

  // kinds returns those of which the sheet has samples.
  private kinds(sheet: SampleSheet, model: SheetModel, models: SheetModel[]): Kind[] {
    const all: Kind[] = [];
    if ((model.fails ?? []).length > 0) all.push('fails');
    all.push('most', 'least');
    if (models.some((m) => m !== model && this.parting(sheet, model, m))) all.push('parts');
    return [...all, 'all'];
  }

  // parting returns the samples that model a classifies correctly and model b does not.
  private parting(sheet: SampleSheet, a: SheetModel, b: SheetModel) {
    return sheet.partings?.find((p) => sheet.models[p.a] === a && sheet.models[p.b] === b);
  }

  // lines returns the samples to show, as indices in sheet.samples, and a sentence on them. k is
  // the index of the parameter's value. sheet.of is the number of samples of which the sheet shows
  // some.
  private lines(
    sheet: SampleSheet,
    model: SheetModel,
    kind: Kind,
    other: SheetModel | undefined,
    k: number,
  ): { lines: number[]; text: string } {
    const view = model.views[k];
    const condition = conditionOf(sheet, k);
    const right = (predicted: number[] | undefined, i: number) =>
      sheet.samples[i].label >= 0 && predicted?.[i] === sheet.samples[i].label;
    const all = sheet.samples.map((_, i) => i);
    const countText = (n: number, of: number) =>
      `${n} of ${of} samples` + (of > 0 ? ` (${Math.round((100 * n) / of)} %)` : '');
    switch (kind) {
      case 'fails': {
        const lines = all
          .filter((i) => right(model.clean, i) && !right(view.moved, i))
          .sort((a, b) => view.confidence![b] - view.confidence![a]);
        const text = `Under ${condition}, ${model.model} gets ${countText(view.failed, model.right)} wrong that it gets right as they are. The most confident errors come first.`;
        return { lines, text };
      }
      case 'parts': {
        const counts = this.parting(sheet, model, other!)!.counts;
        const lines = all.filter((i) => right(model.views[k].moved, i) && !right(other!.views[k].moved, i));
        const text = `Under ${condition}, ${model.model} is right and ${other!.model} wrong on ${countText(counts[k], sheet.of)}. The predictions beside the samples are those of ${other!.model}.`;
        return { lines, text };
      }
      case 'all': {
        const text = `The ${all.length} samples of ${sheet.of} that this report shows under ${sheet.transform}: those that fail or change most or least, and those on which models differ. samples.parquet holds the values of more.`;
        return { lines: all.sort((a, b) => sheet.samples[a].index - sheet.samples[b].index), text };
      }
      default: {
        const changed = view.moved
          ? ` Under ${condition}, ${model.model} changes its prediction for ${countText(view.changed, sheet.of)}.`
          : '';
        const over = sheet.parameters.length > 1 ? `, on average over the values of ${sheet.transform}` : '';
        const text = `The samples that ${sheet.transform} changes ${kind} for ${model.model}${over}, by ${sheet.title}.${changed}`;
        return { lines: model[kind], text };
      }
    }
  }

  private draw(
    sheet: SampleSheet,
    model: SheetModel,
    kind: Kind,
    other: SheetModel | undefined,
    label: number,
    outcome: string,
  ): void {
    let limit = cardsPerStep;
    const current = () => {
      const k = placeOf(this.state, sheet);
      const { lines, text } = this.lines(sheet, model, kind, other, k);
      const shownModel = kind === 'parts' ? other! : model;
      const all = lines
        .filter((i) => label < 0 || sheet.samples[i].label === label)
        .map((i) => cardOf(sheet, shownModel, i, k))
        .filter(outcomes[outcome][1]);
      return { k, text, all, cards: all.slice(0, limit) };
    };
    const condition = () => conditionOf(sheet, current().k);
    const title = `${kinds[kind]}: ${kind === 'parts' ? `${model.model} and ${other!.model}` : model.model} under ${sheet.transform}`;
    const updateText = () => {
      this.part('reading').textContent = current().text;
    };
    updateText();
    const figure = new Figure({
      title,
      description: title,
      wide: true,
      build: () => ({
        text: '',
        show: (into) => {
          const list = element('ul', { class: 'cards', 'aria-label': title });
          const showMore = () => {
            const next = limit;
            limit += cardsPerStep;
            this.fill();
            const first = list.children[next] as HTMLElement;
            first.setAttribute('tabindex', '-1');
            first.focus();
          };
          const more = button(showMore, { class: 'more' });
          into.replaceChildren(list, more);
          this.fill = () => {
            updateText();
            const { k, all, cards } = current();
            const left = all.length - cards.length;
            more.hidden = left === 0;
            more.textContent = `Show ${Math.min(left, cardsPerStep)} of ${left} more`;
            list.replaceChildren(...cards.map((c) => cardElement(sheet, c, k, condition())));
            if (cards.length === 0)
              list.append(element('li', { class: 'none' }, 'This report shows none of these samples.'));
          };
          this.fill();
          return drawable(sheet, () => current());
        },
      }),
      describe: () => [],
      data: () => {
        const { all } = current();
        return tableOf(`Data of the samples: ${title}`, all, fieldsOf(sheet, all, condition()));
      },
    });
    this.show([figure]);
  }
}

function cardOf(sheet: SampleSheet, model: SheetModel, line: number, k: number): Card {
  const { label, name, index } = sheet.samples[line],
    view = model.views[k];
  const of = (all: number[] | undefined) => (all ? (sheet.classes?.[all[line]] ?? '') : '');
  const isRight = (all: number[] | undefined) => (all && label >= 0 ? all[line] === label : null);
  return {
    line,
    name: name || String(index),
    label: label >= 0 ? sheet.classes![label] : '',
    before: of(model.clean),
    after: of(view.moved),
    confidenceBefore: model.confidence?.[line] ?? null,
    confidenceAfter: view.confidence?.[line] ?? null,
    value: view.value[line],
    rightBefore: isRight(model.clean),
    rightAfter: isRight(view.moved),
  };
}

const mark = (right: boolean | null) => (right === null ? '' : right ? '✓ ' : '✗ ');

// spoken returns a prediction in words, for screen readers.
function spoken(name: string, confidence: number | null, right: boolean | null): string {
  const verdict = right === null ? '' : right ? ', right' : ', wrong';
  return `predicted ${name}${confidence === null ? '' : ` with ${Math.round(100 * confidence)} %`}${verdict}`;
}

// cardElement draws a card: the sample as it is beside the transformed one.
function cardElement(sheet: SampleSheet, c: Card, k: number, condition: string): HTMLElement {
  // column: of the tile among those of the sample; 0 is the sample as it is
  const side = (column: number, what: string, name: string, confidence: number | null, right: boolean | null) => {
    const parts: (Node | string)[] = [];
    if (hasImages(sheet)) {
      const { width, height } = sheet.tile!;
      const image = element('img', {
        alt: `${c.name}, ${what}`,
        width: width,
        height: height,
      });
      if (Math.max(width, height) <= 48) image.classList.add('pixels'); // enlarged without smoothing
      void tile(sheet, c.line, column).then((url) => {
        image.src = url;
      });
      parts.push(image);
    }
    const play = playButton(sheet, c.line, column, `${c.name}, ${what}`);
    if (play) parts.push(play);
    if (name)
      parts.push(
        element(
          'p',
          { class: right === false ? 'wrong' : '', title: spoken(name, confidence, right) },
          // Screen readers read the text of class unseen, which is not visible.
          element('span', { class: 'unseen' }, `${spoken(name, confidence, right)}. `),
          element('span', { 'aria-hidden': 'true' }, `${mark(right)}${shorten(name, 16)}`),
          ...(confidence === null ? [] : [element('small', { 'aria-hidden': 'true' }, ` ${Math.round(100 * confidence)} %`)]),
        ),
      );
    return element('div', {}, ...parts);
  };
  const about = aboutOf(sheet, c);
  const title = [c.name, c.label && `class ${c.label}`, condition, `${sheet.title} ${c.value}`]
    .filter(Boolean)
    .join('\n');
  return element(
    'li',
    { class: 'card', title },
    element(
      'div',
      { class: 'pair' },
      side(0, 'as it is', c.before, c.confidenceBefore, c.rightBefore),
      side(k + 1, `under ${condition}`, c.after, c.confidenceAfter, c.rightAfter),
    ),
    element('p', { class: 'say' }, hasImages(sheet) ? about : `${shorten(c.name, 24)}: ${about}`),
  );
}

// aboutOf returns the value of a card, with the class of the sample if neither prediction is correct.
function aboutOf(sheet: SampleSheet, c: Card): string {
  const known = c.label === '' || c.rightBefore || c.rightAfter;
  return `${known ? '' : `${shorten(c.label, 16)}; `}${sheet.title} ${number(c.value)}`;
}

const svgColumns = 4; // cards side by side in a saved SVG

// drawable writes the cards as one SVG.
function drawable(sheet: SampleSheet, current: () => { cards: Card[]; k: number }): Drawable {
  return {
    finalize: () => {},
    toSVG: async () => {
      const { cards, k } = current();
      const size = sheet.tile ?? { width: 80, height: 0 };
      const zoom = hasImages(sheet) ? 96 / Math.max(size.width, size.height) : 1;
      const w = hasImages(sheet) ? size.width * zoom : 110,
        h = hasImages(sheet) ? size.height * zoom : 0;
      const cell = { w: 2 * w + 44, h: h + 62 };
      const columns = Math.min(svgColumns, Math.max(1, cards.length));
      const svg = node('svg', {
        xmlns: 'http://www.w3.org/2000/svg',
        width: columns * cell.w + 16,
        height: Math.ceil(cards.length / columns) * cell.h + 16,
      });
      const font = { 'font-size': 12, 'font-family': 'sans-serif' };
      const write = (x: number, y: number, content: string, colour: string) =>
        svg.append(node('text', { x, y, ...font, fill: `var(--${colour})` }, content));
      for (const [i, c] of cards.entries()) {
        const x = 8 + (i % columns) * cell.w,
          y = 8 + Math.floor(i / columns) * cell.h;
        const sides = [
          [0, c.before, c.confidenceBefore, c.rightBefore],
          [k + 1, c.after, c.confidenceAfter, c.rightAfter],
        ] as const;
        for (const [s, [column, name, confidence, right]] of sides.entries()) {
          const left = x + s * (w + 8);
          if (hasImages(sheet))
            svg.append(
              node('image', { x: left, y, width: w, height: h, href: await tile(sheet, c.line, column) }),
            );
          const percent = confidence === null ? '' : ` ${Math.round(100 * confidence)} %`;
          write(left, y + h + 16, `${mark(right)}${shorten(name, 12)}${percent}`, 'text');
        }
        write(x, y + h + 33, aboutOf(sheet, c), 'muted');
      }
      return new XMLSerializer().serializeToString(svg);
    },
  };
}

// fieldsOf returns the columns of the data of cards that some card has.
function fieldsOf(sheet: SampleSheet, cards: Card[], condition: string): Field<Card>[] {
  const all: Field<Card>[] = [
    ['sample', (c) => c.name],
    ['index', (c) => sheet.samples[c.line].index, true],
    ['class', (c) => c.label],
    ['predicted as it is', (c) => c.before],
    ['confidence', (c) => c.confidenceBefore],
    [`predicted under ${condition}`, (c) => c.after],
    ['its confidence', (c) => c.confidenceAfter],
    [sheet.title, (c) => c.value],
  ];
  return all.filter(([, get]) => cards.some((c) => get(c) !== '' && get(c) !== null));
}
