package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/study"
)

// showProgress shows a bar with rate and remaining time on a terminal, else lines. Call done at the
// end.
func showProgress(w *os.File) (progress func(study.Progress), done func()) {
	if !term.IsTerminal(int(w.Fd())) {
		return progressLines(w), func() {}
	}
	return progressBar(w)
}

func progressBar(w io.Writer) (func(study.Progress), func()) {
	container := mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
	var b *mpb.Bar
	var what string
	update := func(p study.Progress) { // p.Done and p.Total count forward passes
		what = subject(p)
		if b == nil {
			b = container.AddBar(p.Total,
				mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return what + " " })),
				mpb.AppendDecorators(decor.Percentage(decor.WC{W: 5}), decor.AverageSpeed(0, "  %.0f/s"),
					decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace), "")))
		}
		b.SetCurrent(p.Done)
	}
	return update, func() {
		if b != nil {
			b.Abort(false) // an unfinished bar stays on the terminal
		}
		container.Wait()
	}
}

// subject describes what a run works on.
func subject(p study.Progress) string {
	text := fmt.Sprintf("%s on %s", p.Model, p.Data)
	if p.Passes > 1 {
		text += fmt.Sprintf(", pass %d of %d", p.Pass, p.Passes)
	}
	switch {
	case p.ToScore > 0:
		text += fmt.Sprintf(": %d of %s scored", p.Scored, plural.Of(p.ToScore, "layer"))
	case p.AllSamples > 0:
		text += fmt.Sprintf(": %d of %s", p.Samples, plural.Of(p.AllSamples, "sample"))
	}
	if p.Note != "" {
		text += ", " + p.Note
	}
	return report.Printable(text)
}

// lineInterval is the time between lines of progress.
const lineInterval = 10 * time.Second

func progressLines(w io.Writer) func(study.Progress) {
	// Rates are computed from the first report on: a resumed procedure does not begin at 0.
	var first study.Progress
	var start, last time.Time
	return func(p study.Progress) {
		now := time.Now()
		if start.IsZero() {
			first, start, last = p, now, now
		}
		if now.Sub(last) >= lineInterval {
			last = now
			fmt.Fprintln(w, progressLine(p, p.Done-first.Done, now.Sub(start)))
		}
	}
}

// progressLine describes the progress of a run. done is the part of p.Done that this process has
// done in the duration. Rate and remaining time appear from 2 % on: the first batches are slower.
func progressLine(p study.Progress, done int64, duration time.Duration) string {
	if p.ToScore > 0 {
		return subject(p)
	}
	what := ""
	if p.AllSamples > 0 {
		what = " of the forward passes"
	}
	line := fmt.Sprintf("%s, %.0f %%%s", subject(p), 100*float64(p.Done)/float64(max(1, p.Total)), what)
	if done <= 0 || 50*done < p.Total {
		return line
	}
	rate := float64(done) / duration.Seconds()
	left := time.Duration(float64(p.Total-p.Done) / rate * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("%s, %.0f/s, %s left", line, rate, left)
}
