// Package report prepares scores for display: it selects rows, describes them in sentences and
// computes distributions and relations. Its subpackages write them as a table in the terminal, as a
// page for the browser, and as figures and tables for papers.
//
// Its input is score rows and the record of the run. Most rows are details: one row for each value
// of a transformation's parameter, for each trial, for each class. Overviews show the rows that
// summarise them, the means over values and over trials.
//
//	shown := report.Overview(result.Rows)
//	found, _ := report.Conclusions(result.Rows, result.Record, nil)
//	for _, sentence := range found {
//		fmt.Println(sentence)
//	}
//
// Conclusions are the sentences of the first screen, Statements those below charts, and Findings
// those of each measure, on the server's page of a run.
//
// Names of models, layers and transformations come from untrusted files and are shown as plain
// text. They are escaped in the page, where a content security policy also forbids all requests and
// all scripts except the report's own. In the terminal, control characters are quoted.
package report

import (
	"slices"

	"github.com/noether-ml/noether/scores"
)

// A Level is the degree to which a row summarises others.
type Level int

const (
	Detail     Level = iota // a row of one trial that another row summarises
	OverTrial               // the row for all trials at one value of the parameter
	OverValues              // the row for all trials and all values of the parameter
)

// Levels returns the level of each row. The row for all trials is their mean, or the first trial if
// there is no mean. The row for all values is their mean, or each value if there is no mean.
func Levels(rows []scores.Row) []Level {
	// An identity has a number. Comparing numbers is much faster than comparing ten texts, and
	// adjacent rows mostly have the same texts.
	type value struct{ id, parameter int }
	var fields [10]numbering[string]
	var ids numbering[[10]int]
	var parameters numbering[string]
	best := map[value]int{} // row of the lowest trial; that of the mean over trials is -1
	mean := map[int]bool{}  // whether an identity has a mean over values
	for i := range rows {
		r := &rows[i]
		var numbers [10]int
		for k, text := range [10]string{r.Model, r.Layer, r.OtherModel, r.OtherLayer, r.Data, r.Transform, r.Measure, r.Variant, r.Factor, r.Statistic} {
			numbers[k] = fields[k].of(text)
		}
		v := value{ids.of(numbers), parameters.of(r.Parameter)}
		if j, seen := best[v]; !seen || r.Trial < rows[j].Trial {
			best[v] = i
		}
		if r.Parameter == "" {
			mean[v.id] = true
		}
	}
	levels := make([]Level, len(rows))
	for v, i := range best {
		levels[i] = OverTrial
		if rows[i].Parameter == "" || !mean[v.id] {
			levels[i] = OverValues
		}
	}
	return levels
}

// A numbering gives values numbers from 0 in the order of their appearance.
type numbering[T comparable] struct {
	known      map[T]int
	last       T // the value of the call before
	lastNumber int
}

func (n *numbering[T]) of(value T) int {
	if n.known == nil {
		n.known = map[T]int{}
	} else if value == n.last {
		return n.lastNumber
	}
	number, known := n.known[value]
	if !known {
		number = len(n.known)
		n.known[value] = number
	}
	n.last, n.lastNumber = value, number
	return number
}

// Overview returns the rows that an overview shows, in the order of the study. A mean over values
// takes the position of the first value, although it comes later in the scores of a run. Rows of
// single classes and factors are included only if no row over all samples summarises them, as for
// probes of a factor or firing rates along the phase of gratings.
func Overview(rows []scores.Row) []scores.Row {
	shown := overviewIndices(rows)
	overview := make([]scores.Row, len(shown))
	for position, i := range shown {
		overview[position] = rows[i]
	}
	return overview
}

func overviewIndices(rows []scores.Row) []int {
	type subject struct{ measure, statistic, model, other, data, transform, variant string }
	type standing struct {
		place int  // index of its first row
		whole bool // it has a row over all samples
	}
	standingOf := make([]*standing, len(rows))
	subjects := map[subject]*standing{}
	for i := range rows {
		r := &rows[i]
		s := subject{r.Measure, r.Statistic, r.Model, r.OtherModel, r.Data, r.Transform, r.Variant}
		if subjects[s] == nil {
			subjects[s] = &standing{place: i}
		}
		standingOf[i] = subjects[s]
		standingOf[i].whole = standingOf[i].whole || r.Factor == ""
	}
	var shown []int
	for i, level := range Levels(rows) {
		if level == OverValues && (rows[i].Factor == "" || !standingOf[i].whole) {
			shown = append(shown, i)
		}
	}
	slices.SortStableFunc(shown, func(a, b int) int { return standingOf[a].place - standingOf[b].place })
	return shown
}

func byModel(r *scores.Row) string     { return r.Model }
func byData(r *scores.Row) string      { return r.Data }
func byTransform(r *scores.Row) string { return r.Transform }
func byMeasure(r *scores.Row) string   { return r.Measure }

// OverTrials returns the rows that summarise trials, in order: the means over trials, or the first
// trial. Each parameter value has its own row.
func OverTrials(rows []scores.Row) []scores.Row {
	levels := Levels(rows)
	n := 0
	for _, level := range levels {
		if level >= OverTrial {
			n++
		}
	}
	kept := slices.Grow([]scores.Row(nil), n)
	for i, level := range levels {
		if level >= OverTrial {
			kept = append(kept, rows[i])
		}
	}
	return kept
}
