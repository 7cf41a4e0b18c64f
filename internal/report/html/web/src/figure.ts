// A figure: a chart with its title, sentences that describe it, and buttons that save it, show its
// data or fill the screen with it.

import { draw, onRow, type Spec, type View } from './vega';
import { button, element } from './dom';
import { marker, markerOf } from './marks';
import { queue } from './queue';
import { fileName, savePNG, saveSVG, type Drawable } from './save';
import { Table, type Source } from './table';
import type { Describe } from './tooltip';

const edge = 16; // pixels around the parts of a figure on the whole screen

/** What a figure shows. build is called when the figure comes into view, or in idle time before. */
export interface Content {
  title: string;
  description: string; // read out to people who do not see the chart
  wide?: boolean;
  // Returns a Vega chart (spec) or a function that draws other content (show), or neither if there
  // is nothing to draw; and the sentences (text).
  build: () => { spec?: Spec; show?: (into: HTMLElement) => Drawable; text: string };
  describe: Describe; // what the tooltip of a mark says
  // Calls mark with the position on the x axis that the reader has chosen, a layer or a value of a
  // parameter, whenever it changes, until the returned function is called.
  follow?: (mark: (place: string) => void) => () => void;
  choose?: (row: number) => void; // called with the row of a mark that the reader clicks
  data: () => Source;
}

export class Figure {
  readonly root: HTMLElement;
  private readonly chart = element('div', { class: 'chart' });
  private readonly text = element('p', { class: 'sentences' });
  private readonly tools: HTMLElement;
  private view?: Drawable;
  private data?: HTMLElement;
  private leave = () => {}; // ends the calls of content.follow

  constructor(private readonly content: Content) {
    this.tools = element(
      'span',
      { class: 'actions' },
      this.button('SVG', 'Save as SVG', () => this.view && void saveSVG(this.view, this.name)),
      this.button('PNG', 'Save as PNG', () => this.view && void savePNG(this.view, this.name)),
      this.toggle(),
      ...this.fullScreen(),
    );
    this.root = element(
      'figure',
      content.wide ? { class: 'wide' } : {},
      element('figcaption', {}, element('span', {}, content.title), this.tools),
      this.chart,
      this.text,
    );
    queue.add(this.root, () => this.draw().catch((problem: unknown) => this.fail(problem)));
  }

  /** Releases the chart. */
  remove(): void {
    queue.remove(this.root);
    this.leave();
    this.view?.finalize();
  }

  private get name(): string {
    return fileName(this.content.description);
  }

  private async draw(): Promise<void> {
    const { spec, show, text } = this.content.build();
    this.text.textContent = text;
    if (show) {
      this.view = show(this.chart);
      this.chart.classList.add('drawn');
      return;
    }
    if (!spec) {
      this.chart.classList.add('drawn', 'empty');
      return;
    }
    const view = await draw(this.chart, spec, this.content.description, this.content.describe);
    this.view = view;
    this.chart.classList.add('drawn');
    const { height } = spec as { height?: unknown };
    if (typeof height === 'number') this.fit(view, height);
    if (this.content.choose) {
      onRow(view, this.content.choose);
      this.chart.classList.add('choosing');
    }
    // Moves the chart's marker, a vertical line, to the chosen position.
    this.leave =
      this.content.follow?.((place) => void view.data(marker, markerOf(place)).runAsync()) ?? this.leave;
  }

  // fail writes in place of the chart why there is none.
  private fail(problem: unknown): void {
    console.error(problem);
    const reason = problem instanceof Error ? problem.message : String(problem);
    this.text.textContent = `This chart cannot be drawn: ${reason}. Its data can be shown.`;
    this.chart.classList.add('drawn', 'empty');
  }

  private button(title: string, label: string, act: () => void): HTMLButtonElement {
    return button(act, { class: 'quiet', 'aria-label': `${label}: ${this.content.title}` }, title);
  }

  // fullScreen is a button that shows the figure on the whole screen, where possible.
  private fullScreen(): HTMLButtonElement[] {
    if (!document.fullscreenEnabled) return [];
    const toggle = () =>
      void (document.fullscreenElement ? document.exitFullscreen() : this.root.requestFullscreen());
    return [this.button('Full', 'Full screen', toggle)];
  }

  // fit gives a chart of fixed height the height of the screen while the figure fills it.
  private fit(view: View, height: number): void {
    this.root.addEventListener('fullscreenchange', () => {
      const full = document.fullscreenElement === this.root;
      const outside = this.chart.offsetTop + this.text.offsetHeight + 4 * edge; // height beyond the chart
      const room = window.innerHeight - outside - (this.chart.offsetHeight - view.height());
      view.height(full ? Math.max(height, room) : height);
      window.dispatchEvent(new Event('resize')); // charts then take the width of their containers
    });
  }

  // toggle is a button that shows and hides the data.
  private toggle(): HTMLButtonElement {
    const button = this.button('Data', 'Show the data of', () => {
      const open = button.getAttribute('aria-expanded') === 'true';
      button.setAttribute('aria-expanded', String(!open));
      if (!this.data) {
        this.data = element('div', { class: 'data' }, new Table(this.content.data()).root);
        this.root.append(this.data);
      }
      this.data.hidden = open;
      this.root.classList.toggle('opened', !open);
    });
    button.setAttribute('aria-expanded', 'false');
    return button;
  }
}
