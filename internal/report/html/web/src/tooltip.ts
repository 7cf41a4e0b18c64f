// The tooltip of a chart. Vega's writes HTML and a style element; this one sets text only, as the
// page's content security policy demands.

import { element } from './dom';

/** Returns the names and the values, as text, of the fields of mark number id of a chart. */
export type Describe = (id: number) => [string, string][];

let box: HTMLElement | undefined;

/** Returns a tooltip handler for Vega, which shows the fields of the mark under the pointer. */
export function tooltip(describe: Describe) {
  return (_handler: unknown, event: MouseEvent, _item: unknown, value: unknown): void => {
    box ??= document.body.appendChild(
      element('div', { class: 'tooltip', role: 'tooltip', hidden: '' }),
    );
    if (value === null || value === undefined || value === '') {
      box.hidden = true;
      return;
    }
    box.replaceChildren(
      ...describe(Number(value))
        .filter(([, text]) => text !== '')
        .map(([name, text]) =>
          element('div', {}, element('span', {}, name), element('b', {}, text)),
        ),
    );
    box.hidden = false;
    place(box, event.clientX, event.clientY);
  };
}

// place puts the box beside a point and keeps it within the window.
function place(box: HTMLElement, x: number, y: number): void {
  const gap = 14;
  const { width, height } = box.getBoundingClientRect();
  const left = x + gap + width < window.innerWidth ? x + gap : Math.max(gap, x - gap - width);
  const top = y + gap + height < window.innerHeight ? y + gap : Math.max(gap, y - gap - height);
  box.style.left = `${left}px`;
  box.style.top = `${top}px`;
}
