package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// worstGroup returns a sentence on the group of the study's key by whose accuracy (or, without
// labels, effective invariance) is furthest below that of all other samples, among those that
// clearly are; nil if samples have no groups. It is about the models that are judged, if any.
func worstGroup(rows []scores.Row, rec scores.Record, c *claims, judged []string) Sentence {
	for _, of := range [][2]string{{"accuracy", "moved"}, {"effective-invariance", "ei"}} {
		gaps := gapsOf(rows, of[0], of[1])
		if len(gaps) == 0 {
			continue
		}
		about := Describe(rows, rec.Measures).Statistic(&gaps[0])
		if about.Direction == measure.Neutral {
			about.Direction = measure.Higher
		}
		var worst *scores.Row
		for i := range gaps {
			g := &gaps[i]
			if len(judged) > 0 && !slices.Contains(judged, g.Model) {
				continue
			}
			if c.holds(claim{identityOf(g), identity{}}, gapP(g, rows)) && isWorse(g.Value, 0, about.Direction) &&
				(worst == nil || math.Abs(g.Value) > math.Abs(worst.Value)) {
				worst = g
			}
		}
		if worst == nil {
			of := ""
			if len(judged) > 0 {
				of = "For " + strings.Join(judged, " and ") + ", no"
			}
			return plainSentence("%s group of %s is clearly worse than the other samples.", cmp.Or(of, "No"), strings.Join(columnsOf(gaps), " or "))
		}
		return groupSentence(*worst, rows, about, len(scores.DistinctValues(gaps, byModel)) > 1)
	}
	return nil
}

// lostGroups returns a sentence on the groups of samples, such as classes, of which the second of two
// models has fewer right than the first, of those that clearly are; nil if no two models are compared
// by group. It is about the models that are judged, if any.
func lostGroups(rows []scores.Row, c *claims, judged []string) Sentence {
	const listed = 3
	var all, lost []scores.Row
	for i, level := range Levels(rows) {
		r := &rows[i]
		if r.Measure != "prediction-agreement" || r.Statistic != "accuracy-difference" || r.Factor == "" || r.Variant != "" || r.Parameter != "" ||
			level < OverTrial || r.N < scores.LeastGroup || len(judged) > 0 && !slices.Contains(judged, r.OtherModel) {
			continue
		}
		if p := differenceP(r, 1); finite(p) {
			all = append(all, *r)
			if c.holds(claim{identityOf(r), identity{}}, p) && r.Value < 0 {
				lost = append(lost, *r)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	pair := func(r scores.Row) (string, string) {
		return Shorten(r.OtherModel, maxNameWidth), Shorten(r.Model, maxNameWidth)
	}
	if len(lost) == 0 {
		second, first := pair(all[0])
		if len(scores.DistinctValues(all, byModel)) > 1 || len(scores.DistinctValues(all, func(r *scores.Row) string { return r.OtherModel })) > 1 {
			second, first = "a model", "another"
		}
		return plainSentence("In no group of %s is %s clearly right less often than %s.", strings.Join(columnsOf(all), " or "), second, first)
	}
	slices.SortStableFunc(lost, func(a, b scores.Row) int { return cmp.Compare(a.Value, b.Value) })
	seen := map[[3]string]bool{} // groups, each at its largest loss
	lost = slices.DeleteFunc(lost, func(r scores.Row) bool {
		of := [3]string{r.Model, r.OtherModel, r.Factor}
		before := seen[of]
		seen[of] = true
		return before
	})
	var out Sentence
	for i, r := range lost[:min(len(lost), listed)] {
		second, first := pair(r)
		column, group, _ := strings.Cut(r.Factor, "=")
		text := fmt.Sprintf("for %s %s ", Shorten(column, maxNameWidth), Shorten(group, maxNameWidth))
		if i == 0 || lost[i-1].Model != r.Model || lost[i-1].OtherModel != r.OtherModel {
			text = fmt.Sprintf("%s is right less often than %s %s", second, first, text)
		}
		if i > 0 {
			text = ", " + text
		}
		if r.Transform != "" {
			text += "under " + Shorten(transformLabel(&r), maxNameWidth) + " "
		}
		out = append(out, Phrase{Text: fmt.Sprintf("%s(%s", text, Number(r.Value)), Aside: " " + Interval(r.Low, r.High)}, Phrase{Text: ")"})
	}
	if more := len(lost) - listed; more > 0 {
		out = append(out, Phrase{Text: fmt.Sprintf(" and %d more", more)})
	}
	return append(out, Phrase{Text: ", which is more than chance."})
}

// differenceP returns the p-value of the hypothesis that the differences of k scores are 0, from the
// 95 % interval of one of them that is corrected for their number.
func differenceP(r *scores.Row, k float64) float64 {
	half := r.High - r.Value // on the side of 0
	if r.Value > 0 {
		half = r.Value - r.Low
	}
	if !(half > 0) || k == 0 {
		return math.NaN()
	}
	z := math.Abs(r.Value) / half * distuv.UnitNormal.Quantile(1-0.05/k/2)
	return min(1, 2*k*distuv.UnitNormal.CDF(-z))
}

// gapsOf returns the gaps of the worst groups in a statistic: the means over values and trials.
func gapsOf(rows []scores.Row, measureName, statistic string) []scores.Row {
	var out []scores.Row
	for i, level := range Levels(rows) {
		r := &rows[i]
		if r.Measure == measureName && r.Statistic == statistic && r.Variant == scores.Gap && r.OtherModel == "" && level >= OverTrial && finite(r.Value) &&
			(r.Parameter == "" || !slices.ContainsFunc(rows, func(o scores.Row) bool {
				return o.Variant == scores.Gap && o.Parameter == "" && o.Measure == r.Measure && o.Statistic == r.Statistic && o.Model == r.Model && o.Data == r.Data && o.Transform == r.Transform
			})) {
			out = append(out, *r)
		}
	}
	return out
}

func columnsOf(gaps []scores.Row) []string {
	return scores.DistinctValues(gaps, func(r *scores.Row) string { column, _, _ := strings.Cut(r.Factor, "="); return column })
}

// groupsLike returns the scores of the groups of the gap's column.
func groupsLike(gap *scores.Row, rows []scores.Row) []scores.Row {
	column, _, _ := strings.Cut(gap.Factor, "=")
	like := identityOf(gap)
	like.variant, like.factor = "", ""
	return slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool {
		of := identityOf(&r)
		of.factor = ""
		return of != like || !strings.HasPrefix(r.Factor, column+"=")
	})
}

// gapP returns the p-value of the hypothesis that a group is like the others, corrected for the
// number of groups, as the interval of its gap is.
func gapP(gap *scores.Row, rows []scores.Row) float64 {
	k := 0.
	for _, r := range groupsLike(gap, rows) {
		if r.N >= scores.LeastGroup {
			k++
		}
	}
	return differenceP(gap, k)
}

// isWorse reports whether a value is worse than another.
func isWorse(a, b float64, d measure.Direction) bool {
	if d == measure.Lower {
		return a > b
	}
	return a < b
}

// groupSentence names the group with its score and the gap.
func groupSentence(gap scores.Row, rows []scores.Row, about measure.StatisticDescriptor, several bool) Sentence {
	column, group, _ := strings.Cut(gap.Factor, "=")
	text := fmt.Sprintf("The worst group is %s %s: ", Shorten(column, maxNameWidth), Shorten(group, maxNameWidth))
	if several {
		text += Shorten(gap.Model, maxNameWidth) + " has "
	}
	score := ""
	for _, r := range groupsLike(&gap, rows) {
		if r.Factor == gap.Factor {
			score = Number(r.Value) + " "
		}
	}
	below := "below"
	if about.Direction == measure.Lower {
		below = "above"
	}
	name := about.Title
	if gap.Measure == "accuracy" {
		name = "accuracy"
	}
	return Sentence{
		{Text: fmt.Sprintf("%s%s %s", text, name, strings.TrimSpace(score+"under "+Shorten(transformLabel(&gap), maxNameWidth)))},
		{Text: fmt.Sprintf(", %s %s the other samples", Number(math.Abs(gap.Value)), below), Aside: " " + Interval(math.Min(math.Abs(gap.Low), math.Abs(gap.High)), math.Max(math.Abs(gap.Low), math.Abs(gap.High)))},
		{Text: ", which is more than chance."},
	}
}
