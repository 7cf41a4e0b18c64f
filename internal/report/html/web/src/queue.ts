// Charts are drawn when they come into view, one after the other. The rest are drawn while the
// browser is idle, so that a page is complete when it is printed or searched. The document is
// marked by data-drawn when all charts in view are drawn, and by data-complete when all are.

interface Job {
  draw: () => Promise<void>;
  near: boolean; // in view or within 400 pixels of it
}

class Queue {
  private readonly waiting = new Map<Element, Job>();
  private busy = false;
  private watcher = new IntersectionObserver((entries) => this.seen(entries), {
    rootMargin: '400px',
  });

  add(element: Element, draw: () => Promise<void>): void {
    this.waiting.set(element, { draw, near: false });
    this.watcher.observe(element);
    document.documentElement.removeAttribute('data-complete');
    void this.work();
  }

  /** Starts the queue, so that a page without charts is marked as complete, too. */
  settle(): void {
    void this.work();
  }

  /** Draws all queued elements, in view or not. */
  async all(): Promise<void> {
    for (const job of this.waiting.values()) job.near = true;
    void this.work();
    while (document.documentElement.dataset.complete !== 'true') await frame();
  }

  remove(element: Element): void {
    this.watcher.unobserve(element);
    this.waiting.delete(element);
  }

  // seen records which elements are near, and draws these first.
  private seen(entries: IntersectionObserverEntry[]): void {
    for (const entry of entries) {
      const job = this.waiting.get(entry.target);
      if (job) job.near = entry.isIntersecting;
    }
    void this.work();
  }

  // shown marks that what is in view is drawn.
  private shown(): void {
    if (document.documentElement.dataset.drawn === 'true') return;
    performance.mark('first view');
    document.documentElement.dataset.drawn = 'true';
  }

  // work draws all waiting elements, unless it is already running.
  private async work(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    await frame(); // by then the observer has reported which elements are in view
    await frame();
    while (this.waiting.size > 0) {
      let next = [...this.waiting].find(([, job]) => job.near);
      if (!next) {
        this.shown();
        await idle();
        next = [...this.waiting].find(([, job]) => job.near) ?? [...this.waiting][0];
        if (!next) break;
      }
      const [element, job] = next;
      this.remove(element);
      await job.draw();
    }
    this.busy = false;
    this.shown();
    document.documentElement.dataset.complete = 'true';
  }
}

// frame waits for the next frame, or 100 ms where the page is in the background and has no frames.
function frame(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, 100);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

// idle waits until the browser is idle, at most 200 ms, or 20 ms where it cannot tell.
function idle(): Promise<void> {
  return new Promise((resolve) =>
    'requestIdleCallback' in window
      ? requestIdleCallback(() => resolve(), { timeout: 200 })
      : setTimeout(resolve, 20),
  );
}

export const queue = new Queue();
