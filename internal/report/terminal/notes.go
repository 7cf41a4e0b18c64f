package terminal

import (
	"fmt"
	"strings"

	"github.com/noether-ml/noether/internal/report"
)

// notes prints at most longestList notes under a title, each with the number of its places, by the
// noun unit, and the first two of them.
func (p *printer) notes(title string, all []report.Note, unit string) {
	if len(all) == 0 {
		return
	}
	p.line("")
	p.line(p.style.title.Render(title))
	for _, n := range all[:min(len(all), longestList)] {
		text := "- " + report.Printable(n.Text)
		if len(n.Where) > 0 {
			text += fmt.Sprintf(" (%s: %s)", report.Plural(n.Count, unit), report.Printable(firstItems(n.Where, 2)))
		}
		p.wrapped(p.style.plain, text, 2)
	}
	if more := len(all) - longestList; more > 0 {
		p.line(p.style.faint.Render(fmt.Sprintf("- and %d more", more)))
	}
}

// firstItems joins at most most items: "a, b", or "a, b, …" if there are more.
func firstItems(items []string, most int) string {
	if len(items) > most {
		items = append(items[:most:most], "…")
	}
	return strings.Join(items, ", ")
}
