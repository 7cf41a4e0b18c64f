package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A use is a task for which a layer is taken, and the scores that say how well layers suit it.
type use struct {
	name  string // as in "best layer for retrieval"
	title string // of the quality
	over  string // over what it is a mean
	// terms returns the weight of a row in the quality of its layer; 0: it has none.
	terms func(r *scores.Row) float64
}

// uses returns the uses that the rows say something of, each by the first of its measures that the
// run has.
func uses(rows []scores.Row) []use {
	has := func(is func(r *scores.Row) bool) bool {
		return slices.ContainsFunc(rows, func(r scores.Row) bool { return r.Layer != "" && r.OtherModel == "" && is(&r) })
	}
	var out []use
	add := func(name, title, over string, is func(r *scores.Row) float64) bool {
		found := has(func(r *scores.Row) bool { return is(r) != 0 })
		if found {
			out = append(out, use{name, title, over, is})
		}
		return found
	}
	one := func(yes bool) float64 {
		if yes {
			return 1
		}
		return 0
	}
	add("retrieval", "recall at 1", "transformation", func(r *scores.Row) float64 {
		return one(r.Measure == "retrieval" && r.Statistic == "recall-1" && r.Factor == "")
	})
	seis := func(statistic string) func(*scores.Row) bool {
		return func(r *scores.Row) bool { return r.Measure == "seis" && r.Statistic == statistic }
	}
	both := has(seis("equivariance")) && has(seis("invariance"))
	add("localisation", "equivariance less invariance", "transformation", func(r *scores.Row) float64 {
		switch {
		case !both || r.Factor != "" || r.Variant != "":
			return 0
		case seis("invariance")(r):
			return -1
		}
		return one(seis("equivariance")(r))
	})
	for _, probe := range []string{"ridge", "slp"} { // the linear ones
		linear := func(r *scores.Row) bool { return r.Measure == "informativeness" && r.Variant == probe }
		const name = "linear probing"
		if add(name, "accuracy of a linear probe", "label", func(r *scores.Row) float64 {
			return one(linear(r) && r.Factor == "label" && r.Statistic == "accuracy")
		}) || add(name, "R² of a linear probe", "factor", func(r *scores.Row) float64 { return one(linear(r) && r.Statistic == "r2") }) ||
			add(name, "accuracy of a linear probe", "factor", func(r *scores.Row) float64 { return one(linear(r) && r.Statistic == "accuracy") }) {
			break
		}
	}
	return out
}

// NamesLayers reports whether Conclusions may name a best layer.
func NamesLayers(rows []scores.Row) bool { return len(uses(rows)) > 0 }

// A suited layer has a quality for a use: the mean over transformations or factors.
type suited struct {
	row   *scores.Row // one of its scores
	score measure.Score
}

// A ranking is the layers of a model by their quality for a use.
type ranking struct {
	layers   []suited // the best first, without those that are no better than chance
	measured int      // the number with those
	over     int      // the number of scores that a quality is the mean of
}

// rank ranks the layers of a model by their scores on one data set. A layer that lacks a score that
// others have is left out.
func (u use) rank(rows []scores.Row, model, data string, replicates *Replicates) ranking {
	terms := map[string][]*scores.Row{}
	var order []string
	most := 0
	for i := range rows {
		r := &rows[i]
		if r.Model != model || r.Data != data || r.Layer == "" || r.OtherModel != "" || !finite(r.Value) || u.terms(r) == 0 {
			continue
		}
		if terms[r.Layer] == nil {
			order = append(order, r.Layer)
		}
		terms[r.Layer] = append(terms[r.Layer], r)
		most = max(most, len(terms[r.Layer]))
	}
	var out ranking
	for _, layer := range order {
		if len(terms[layer]) < most {
			continue
		}
		out.measured++
		var weights []float64
		var all []measure.Score
		positive, chance := 0., false
		for _, r := range terms[layer] {
			w := u.terms(r)
			positive += max(0, w)
			weights, all = append(weights, w), append(all, replicates.of(r))
			chance = chance || w > 0 && finite(r.Null) && isAtChance(*r, measure.Higher)
		}
		for i := range weights {
			weights[i] /= positive
		}
		out.over = int(positive)
		if !chance {
			out.layers = append(out.layers, suited{terms[layer][0], combined(weights, all)})
		}
	}
	slices.SortStableFunc(out.layers, func(a, b suited) int { return cmp.Compare(b.score.Value, a.score.Value) })
	return out
}

// combined returns a weighted sum of scores of the same samples. Its replicates are the sums of
// theirs. Without these its interval has the sum of the half-widths, as if the scores went together
// fully.
func combined(weights []float64, all []measure.Score) measure.Score {
	out := measure.Plain("", 0, all[0].N)
	half, paired := 0.0, true
	for i, s := range all {
		w := weights[i]
		out.Value += w * s.Value
		half += math.Abs(w) * (s.High - s.Low) / 2
		out.Spread += math.Abs(w) * s.Spread
		out.Freedom = s.Freedom
		paired = paired && len(s.Replicates) > 1 && len(s.Replicates) == len(all[0].Replicates) && s.N == out.N
	}
	if paired {
		for k := range all[0].Replicates {
			r := measure.Replicate{Left: all[0].Replicates[k].Left}
			for i, s := range all {
				r.Value += weights[i] * s.Replicates[k].Value
			}
			out.Replicates = append(out.Replicates, r)
		}
	}
	out.Low, out.High = out.Value-half, out.Value+half
	return out
}

// bestLayers returns a sentence for each of the first models on the layer that suits each use best,
// with the difference to the next layer and its interval.
func bestLayers(rows []scores.Row, rec scores.Record, c *claims) []Sentence {
	shown := Overview(rows)
	branch := Branches(rec.Models)
	shown = slices.DeleteFunc(shown, func(r scores.Row) bool { return branch(&r) })
	places := NewPlaces(rows)
	all := uses(shown)
	models := scores.DistinctValues(shown, byModel)
	var out []Sentence
	for _, model := range models {
		sentence := plainSentence("Best layer")
		if len(models) > 1 {
			sentence[0].Text += " of " + Shorten(model, maxNameWidth)
		}
		n := 0
		for _, u := range all {
			clause := u.clause(shown, model, places, c)
			if clause == nil {
				continue
			}
			if n++; n > 1 {
				sentence = append(sentence, Phrase{Text: ";"})
			}
			sentence = append(sentence, clause...)
		}
		if n > 0 && len(out) < maxNamed {
			out = append(out, append(sentence, Phrase{Text: "."}))
		}
	}
	return out
}

// clause returns what follows "best layer", or nil for fewer than two layers: " for retrieval: layer
// 7 of 20 (recall at 1: 0.930), 0.020 [0.010, 0.030] more than layer 6 of 20". The interval is
// widened by the correction of the claims, so that it excludes 0 if the difference is one.
func (u use) clause(shown []scores.Row, model string, places Places, c *claims) []Phrase {
	i := slices.IndexFunc(shown, func(r scores.Row) bool {
		return r.Model == model && r.Layer != "" && r.OtherModel == "" && u.terms(&r) != 0
	})
	if i < 0 {
		return nil
	}
	r := u.rank(shown, model, shown[i].Data, c.replicates) // on the first data set
	out := []Phrase{{Text: " for " + u.name + ": "}}
	switch {
	case r.measured < 2:
		return nil
	case len(r.layers) == 0:
		return append(out, Phrase{Text: "none is better than chance"})
	}
	best, average := r.layers[0], ""
	if r.over > 1 {
		average = fmt.Sprintf(" on average over %s", Plural(r.over, u.over))
	}
	quality := fmt.Sprintf(" (%s: %s%s)", u.title, Number(best.score.Value), average)
	if len(r.layers) == 1 {
		return append(out, places.phrase(*best.row), Phrase{Text: quality + ", the only one above chance"})
	}
	next := r.layers[1]
	of := claim{identityOf(next.row), identityOf(best.row)}
	of.a.statistic = u.name // the quality, not one of its scores
	held, d := c.judge(of, scores.Subtract(next.score, best.score, true), pairs(r.measured))
	difference := fmt.Sprintf("%s, %s more than ", quality, Number(d.Value))
	if interval := Interval(d.Corrected()); interval != "" {
		difference = fmt.Sprintf("%s, %s %s more than ", quality, Number(d.Value), interval)
	}
	switch held {
	case insignificant:
		out = append(out, Phrase{Text: "none is seen to be better than "})
	case unknown:
		out = append(out, Phrase{Text: "without intervals, "})
	}
	return append(append(out, places.phrase(*best.row), Phrase{Text: difference}), places.phrase(*next.row))
}
