package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/scores"
)

// maxFailures is the maximum number of failures in a table; failures/ in the run folder has all.
const maxFailures = 40

// WriteFailures prints a table of failures and their errors.
func WriteFailures(w io.Writer, failed []scores.Failure, o Options) error {
	if o.Width <= 0 {
		o.Width = defaultWidth
	}
	p := printer{width: o.Width, style: newStyles(w, o.Colour)}
	p.failed(failed)
	_, err := io.WriteString(w, p.out.String())
	return err
}

// failed prints a row for each error: the work that failed, and beside it the error, wrapped.
func (p *printer) failed(failed []scores.Failure) {
	if len(failed) == 0 {
		return
	}
	p.line("")
	p.line(p.style.title.Render("Failed"))
	all := report.FailureNotes(failed)
	shown := all[:min(len(all), maxFailures)]
	what, more := 0, len(failed)
	for _, n := range shown {
		what = max(what, ansi.StringWidth(affectedWork(n)))
		more -= n.Count
	}
	what = min(what, p.width*2/5)
	for _, n := range shown {
		left := report.Fold(affectedWork(n), what)
		right := report.Fold(report.Printable(n.Text), p.width-what-2)
		for i := range max(len(left), len(right)) {
			l, r := "", ""
			if i < len(left) {
				l = left[i]
			}
			if i < len(right) {
				r = right[i]
			}
			pad := strings.Repeat(" ", max(0, what-ansi.StringWidth(l)))
			p.line(strings.TrimRight(l+pad+"  "+p.style.warn.Render(r), " "))
		}
	}
	if more > 0 {
		p.line(p.style.faint.Render(fmt.Sprintf("and %d more; the folder failures has a file for each", more)))
	}
}

// affectedWork describes the work that an error affected, for instance "seis of model a on data d
// under tilt 15, and 4 more".
func affectedWork(n report.Note) string {
	text := strings.Join(n.Where[:min(len(n.Where), 1)], "")
	if n.Count > 1 {
		text += fmt.Sprintf(", and %s more", report.Count(n.Count-1))
	}
	return report.Printable(text)
}
