package report

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// maxPlaces is the maximum number of places that a note lists.
const maxPlaces = 12

// A Note is a message with the places to which it applies.
type Note struct {
	Text  string
	Where []string // at most maxPlaces, without repetitions
	Count int      // number of occurrences
}

// notes collects messages, one Note for each distinct text, in order of appearance.
type notes struct {
	all   []Note
	place map[string]int // index in all, by text
}

// add counts a message with the place to which it applies; "" is none.
func (n *notes) add(text, where string) {
	if n.place == nil {
		n.place = make(map[string]int)
	}
	i, seen := n.place[text]
	if !seen {
		i = len(n.all)
		n.place[text] = i
		n.all = append(n.all, Note{Text: text})
	}
	n.all[i].Count++
	if slices.Contains(n.all[i].Where, where) {
		return
	}
	if where != "" && len(n.all[i].Where) < maxPlaces {
		n.all[i].Where = append(n.all[i].Where, where)
	}
}

// WarningNotes returns the warnings of a run and of its scores.
func WarningNotes(rows []scores.Row, general []string) []Note {
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
			n.add(text, strings.Join(nonEmpty(r.Measure, r.Model, r.OtherModel, r.Layer, Partner(r)), " "))
		}
	}
	return n.all
}

// SkipNotes returns the measures that did not apply to a model, layer or data set, by reason.
func SkipNotes(skipped []scores.Skip) []Note {
	var n notes
	for _, s := range skipped {
		n.add(s.Measure+": "+s.Why, strings.Join(nonEmpty(s.Model, s.Layer, s.Data), " "))
	}
	return n.all
}

// FailureNotes returns failures, grouped by error, with the work that failed as places.
func FailureNotes(failed []scores.Failure) []Note {
	var n notes
	for _, f := range failed {
		n.add(f.Error, f.Describe())
	}
	return n.all
}
