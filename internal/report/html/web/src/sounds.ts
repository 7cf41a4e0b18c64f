// Recordings of sheets: one recording holds the clips of all samples, one after the other.

import type { SampleSheet } from './data';
import { button } from './dom';

const players = new WeakMap<SampleSheet, HTMLAudioElement>();
let stop = () => {}; // what is heard now

/** The place of a sample among those with clips; -1 if it has none. */
const placeOf = (sheet: SampleSheet, line: number) =>
  sheet.sound && sheet.image ? sheet.sound.lines.indexOf(line) : -1;

/** A button that plays the clip of a sample, or undefined if there is none. */
export function playButton(sheet: SampleSheet, line: number, column: number, what: string): HTMLElement | undefined {
  const place = placeOf(sheet, line);
  if (place < 0) return undefined;
  const { rate, length } = sheet.sound!;
  const start = ((place * (sheet.parameters.length + 1) + column) * length) / rate;
  const play = button(
    () => {
      const heard = play.getAttribute('aria-pressed') === 'true';
      stop();
      if (heard) return;
      const player = players.get(sheet) ?? new Audio(`data:${sheet.type};base64,${sheet.image}`);
      players.set(sheet, player);
      let timer = 0;
      stop = () => {
        clearTimeout(timer);
        player.pause();
        play.setAttribute('aria-pressed', 'false');
        stop = () => {};
      };
      const end = stop;
      play.setAttribute('aria-pressed', 'true');
      player.currentTime = start;
      player.play().then(
        () => {
          if (stop === end) timer = window.setTimeout(stop, (1000 * length) / rate);
        },
        () => {
          if (stop === end) stop();
        },
      );
    },
    { class: 'play', 'aria-label': `Play ${what}`, 'aria-pressed': 'false' },
    '▶',
  );
  return play;
}
