package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/scores"
)

// maxFailures is the maximum number of failures in a table. The run folder has all.
const maxFailures = 40

// WriteFailures prints a table of failures: the work of a study that failed, and the errors.
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
		left := strings.Join(report.Fold(affectedWork(n), what), "\n")
		right := strings.Join(report.Fold(report.Printable(n.Text), p.width-what-2), "\n")
		left = p.style.plain.Width(what + 2).Render(left)
		p.out.WriteString(trimLines(lipgloss.JoinHorizontal(lipgloss.Top, left, p.style.warn.Render(right))))
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
