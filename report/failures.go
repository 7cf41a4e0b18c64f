package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/noether-ml/noether/scores"
)

// mostFailures is how many failures a table lists; failures/ in the run folder has them all.
const mostFailures = 40

// Failures prints a table of what failed and why.
func Failures(w io.Writer, failed []scores.Failure, o Options) error {
	if o.Width <= 0 {
		o.Width = defaultWidth
	}
	p := printer{width: o.Width, style: newStyles(w, o.Colour)}
	p.failed(failed)
	_, err := io.WriteString(w, p.out.String())
	return err
}

// failed prints a row for each failure: what, and beside it the error over as many lines as it wants.
func (p *printer) failed(failed []scores.Failure) {
	if len(failed) == 0 {
		return
	}
	p.line("")
	p.line(p.style.title.Render("Failed"))
	shown := failed[:min(len(failed), mostFailures)]
	what := 0
	for _, f := range shown {
		what = max(what, ansi.StringWidth(printable(f.What())))
	}
	what = min(what, p.width*2/5)
	for _, f := range shown {
		left := strings.Split(ansi.Wrap(printable(f.What()), what, " /"), "\n")
		right := strings.Split(ansi.Wrap(printable(f.Error), p.width-what-2, " /"), "\n")
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
	if more := len(failed) - len(shown); more > 0 {
		p.line(p.style.faint.Render(fmt.Sprintf("and %d more; the folder failures has a file for each", more)))
	}
}
