package report

import (
	"fmt"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// A note is a message with the places that it concerns.
type note struct {
	Text  string
	Where []string
	Count int
}

// notes gathers messages, one note for each different text, in order of appearance.
type notes struct {
	all   []note
	place map[string]int
}

func (n *notes) add(text, where string) {
	if n.place == nil {
		n.place = make(map[string]int)
	}
	i, seen := n.place[text]
	if !seen {
		i = len(n.all)
		n.place[text] = i
		n.all = append(n.all, note{Text: text})
	}
	n.all[i].Count++
	for _, w := range n.all[i].Where {
		if w == where {
			return
		}
	}
	if where != "" && len(n.all[i].Where) < longestList {
		n.all[i].Where = append(n.all[i].Where, where)
	}
}

// warningNotes gathers the warnings of a run and of its scores.
func warningNotes(rows []scores.Row, general []string) []note {
	var n notes
	for _, text := range general {
		n.add(text, "")
	}
	for i := range rows {
		r := &rows[i]
		if r.Warning == "" {
			continue
		}
		for _, text := range strings.Split(r.Warning, "; ") {
			n.add(text, strings.Join(nonEmpty(r.Measure, r.Model, r.OtherModel, r.Layer, partner(r)), " "))
		}
	}
	return n.all
}

// skipNotes gathers the measures that did not apply, by the reason.
func skipNotes(skipped []scores.Skip) []note {
	var n notes
	for _, s := range skipped {
		n.add(s.Measure+": "+s.Why, strings.Join(nonEmpty(s.Model, s.Layer, s.Data), " "))
	}
	return n.all
}

// failureNotes gathers failures, by their error.
func failureNotes(failed []scores.Failure) []note {
	var n notes
	for _, f := range failed {
		n.add(f.Error, f.What())
	}
	return n.all
}

func (p *printer) skipped(skipped []scores.Skip) { p.notes("Skipped", skipNotes(skipped), "place") }

func (p *printer) warnings(rows []scores.Row, general []string) {
	p.notes("Warnings", warningNotes(rows, general), "score")
}

// notes prints each note once, with how often and where it applies.
func (p *printer) notes(title string, all []note, unit string) {
	if len(all) == 0 {
		return
	}
	p.line("")
	p.line(p.style.title.Render(title))
	for _, n := range all[:min(len(all), longestList)] {
		text := "- " + printable(n.Text)
		if len(n.Where) > 0 {
			text += fmt.Sprintf(" (%s: %s)", plural(n.Count, unit), printable(some(n.Where, 2)))
		}
		p.wrapped(p.style.plain, text, 2)
	}
	if more := len(all) - longestList; more > 0 {
		p.line(p.style.faint.Render(fmt.Sprintf("- and %d more", more)))
	}
}
