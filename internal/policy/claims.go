package policy

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// Evidence is what a run knows.
type Evidence struct {
	Rows       []scores.Row
	Record     scores.Record
	Samples    []scores.SampleRow                                // of predictions
	Cells      func() ([]scores.Cell, error)                     // whose scores have replicates, with those of means over trials
	Groupings  map[string][]scores.Grouping                      // by data
	Neutral    func(transform string) (value float64, err error) // at which a transformation changes nothing
	Transforms []string                                          // names of the study
}

// A judge has a policy and the evidence, and what both say together.
type judge struct {
	*Policy
	Evidence
	models, data []string
	statistic    measure.StatisticDescriptor // of Score
	values       map[view]map[int]float64    // of Score by index of the sample, for each model, data, transformation and value
	total        map[view]int                // samples of the run, of which values may be kept of some
	whole        map[view]measure.Score      // of a Score that is no mean over samples; else nil
}

// A view is what values belong to; transform is "" for clean samples.
type view struct{ model, data, transform, parameter string }

// Names are what a policy may name: of a study, or of its run.
type Names struct {
	Models, Data, Transforms, Properties []string
	Measures                             []measure.Descriptor // nil: not known
}

// Check returns an error if the policy names something that a study lacks.
func (p *Policy) Check(n Names) error {
	models, transforms, selectors := slices.Clone(p.Models), slices.Collect(maps.Keys(p.Transforms)), []scores.Selector{}
	if p.Reference != "" {
		models = append(models, p.Reference)
	}
	if p.Loss != nil || p.Least != nil {
		selectors = append(selectors, p.selector)
	}
	for _, t := range p.tolerances {
		selectors = append(selectors, t.Selector)
		if t.Selector.Transform != "" {
			transforms = append(transforms, t.Selector.Transform)
		}
	}
	slices.Sort(transforms)
	err := cmp.Or(known("model", models, n.Models), known("data", p.Data, n.Data), known("transformation", transforms, n.Transforms))
	if err != nil {
		return err
	}
	for _, score := range selectors {
		if err := n.score(score); err != nil && n.Measures != nil {
			return err
		}
	}
	if err := known("property", p.Groups, n.Properties); err != nil {
		return fmt.Errorf("%w: list it under by in the study", err)
	}
	if p.Models == nil && len(n.Models) == 1 && p.Reference != "" {
		return fmt.Errorf("the only model of the study, %s, is the policy's reference: add the model that is to replace it", p.Reference)
	}
	return nil
}

// score returns an error if no measure has a score. Breaking points are of every measure.
func (n Names) score(s scores.Selector) error {
	var measures, statistics []string
	for _, d := range n.Measures {
		measures = append(measures, d.Name)
		if d.Name == s.Measure {
			for _, statistic := range d.Statistics {
				statistics = append(statistics, statistic.Name)
			}
		}
	}
	switch {
	case s.Measure == scores.BreakingDescriptor().Name:
		return nil
	case !slices.Contains(measures, s.Measure):
		return fmt.Errorf("the policy is about %s, which the study does not measure; %s", s.Measure, config.Suggest(s.Measure, measures))
	case !slices.Contains(statistics, s.Statistic):
		return fmt.Errorf("%s has no statistic %q; %s", s.Measure, s.Statistic, config.Suggest(s.Statistic, statistics))
	}
	return nil
}

func known(what string, wanted, have []string) error {
	for _, w := range wanted {
		if slices.Contains(have, w) {
			continue
		}
		hint := ""
		if near := config.Nearest(w, have); near != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		return fmt.Errorf("the policy names the %s %q%s; the study has %s", what, w, hint, cmp.Or(strings.Join(have, ", "), "none (or its run is not complete)"))
	}
	return nil
}

func (j *judge) prepare() error {
	var models, data, columns []string
	for _, r := range j.Rows {
		if !slices.Contains(models, r.Model) {
			models = append(models, r.Model)
		}
		if !slices.Contains(data, r.Data) {
			data = append(data, r.Data)
		}
	}
	for _, groupings := range j.Groupings {
		for _, g := range groupings {
			columns = append(columns, g.Column)
		}
	}
	slices.Sort(columns)
	columns = slices.Compact(columns)
	if err := j.Check(Names{Models: models, Data: data, Transforms: j.Evidence.Transforms, Properties: columns}); err != nil {
		return err
	}
	if j.models = j.Models; j.models == nil {
		j.models = slices.DeleteFunc(models, func(m string) bool { return m == j.Reference })
	}
	if j.data = j.Policy.Data; j.data == nil {
		j.data = data
	}
	if j.Loss == nil && j.Least == nil {
		return nil
	}
	return j.readValues()
}

// readValues sets statistic and values.
func (j *judge) readValues() error {
	found := false
	for _, d := range j.Record.Measures {
		if d.Name == j.selector.Measure {
			j.statistic, found = d.Statistic(j.selector.Statistic)
		}
	}
	of, minus := scores.SampleTerms(j.selector.Measure, j.selector.Statistic)
	j.values, j.total = map[view]map[int]float64{}, map[view]int{}
	switch {
	case !found:
		return j.lacksScore()
	case j.Loss != nil && j.statistic.Range.Bounded() && *j.Loss > j.statistic.Range.High-j.statistic.Range.Low:
		return fmt.Errorf("loss is %v, which no model can exceed: %s is from %v to %v; a loss of 2 %% is 0.02", *j.Loss, j.Score, j.statistic.Range.Low, j.statistic.Range.High)
	case j.statistic.Direction == measure.Neutral:
		return fmt.Errorf("score: neither end of %s is better", j.Score)
	case !j.statistic.PerSample || minus != "":
		return j.readScores()
	}
	type sum struct {
		value float64
		n     int
	}
	sums := map[view]map[int]*sum{} // over trials
	add := func(v view, r scores.SampleRow) {
		if sums[v] == nil {
			sums[v] = map[int]*sum{}
		}
		if sums[v][r.Index] == nil {
			sums[v][r.Index] = &sum{}
		}
		sums[v][r.Index].value += r.Value
		sums[v][r.Index].n++
	}
	for _, r := range j.Samples {
		switch {
		case r.OtherModel != "" || r.Layer != "" || r.Measure != j.selector.Measure || math.IsNaN(r.Value):
		case r.Statistic == of && r.Transform != "":
			add(view{r.Model, r.Data, r.Transform, r.Parameter}, r)
		case r.Statistic == "correct-clean":
			add(view{r.Model, r.Data, "", ""}, r)
		}
	}
	for v, samples := range sums {
		j.values[v] = map[int]float64{}
		for i, s := range samples {
			j.values[v][i] = s.value / float64(s.n)
		}
	}
	for _, r := range j.Rows {
		if r.Measure == j.selector.Measure && r.Statistic == j.selector.Statistic && r.Factor == "" && r.Layer == "" && r.OtherModel == "" {
			j.total[view{r.Model, r.Data, r.Transform, r.Parameter}] = r.N
		}
	}
	if len(j.values) == 0 {
		return j.unmeasured("no values of " + j.Score + " by sample")
	}
	return nil
}

// unmeasured returns the error of a run that lacks what the score needs, with the reason if the run
// has skipped the measure.
func (j *judge) unmeasured(what string) error {
	at := slices.IndexFunc(j.Record.Skipped, func(s scores.Skip) bool { return s.Measure == j.selector.Measure })
	if at < 0 {
		return fmt.Errorf("the run has %s: measure %s in the study and run it again", what, j.selector.Measure)
	}
	hint := ""
	if why := j.Record.Skipped[at].Why; strings.Contains(why, "label") {
		hint = "; without labels, state score: effective-invariance.ei, or keep: ['prediction-agreement.disagreement <= 0.02'], which compares the predictions with the reference's"
	}
	return fmt.Errorf("the run has %s: %s was skipped, since %s%s", what, j.selector.Measure, j.Record.Skipped[at].Why, hint)
}

// claims returns the claims on a model; the wide intervals have the level 1 - alpha.
func (j *judge) claims(model string, alpha float64) []Claim {
	var out []Claim
	for _, data := range j.data {
		out = append(out, j.alarms(model, data)...)
		clean := view{model: model, data: data}
		if _, known := j.whole[clean]; j.Loss != nil && j.Reference != "" && (known || j.selector.Measure == "accuracy") {
			out = append(out, j.ofValue(clean, alpha)...)
		}
		for _, transform := range slices.Sorted(maps.Keys(j.Policy.Transforms)) {
			if j.Loss == nil && j.Least == nil {
				break
			}
			tried, inside, why := j.valuesUpTo(model, data, transform)
			at := func(parameter string) []Claim { return j.ofValue(view{model, data, transform, parameter}, alpha) }
			for _, parameter := range tried {
				out = append(out, at(parameter)...)
			}
			for _, b := range inside {
				out = append(out, b.claims(at(b.low), at(b.high))...)
			}
			if why != "" {
				out = append(out, j.untried(data, transform, why))
			}
		}
		for _, t := range j.tolerances {
			out = append(out, j.keeps(model, data, t, alpha)...)
		}
	}
	return out
}

// alarms returns a claim that is not decided for the model, or the reference, whose scores on some data
// have a warning that changes what they mean, such as that of a forgotten normalisation.
func (j *judge) alarms(model, data string) (out []Claim) {
	if slices.ContainsFunc(j.Record.Data, func(d scores.DataRecord) bool { return d.Name == data && d.Corruption != "" }) {
		return nil // such an accuracy is no alarm there
	}
	for _, of := range []string{model, j.Reference} {
		for _, r := range j.Rows {
			if of == "" || r.Model != of || r.Data != data || r.OtherModel != "" {
				continue
			}
			warnings := strings.Split(r.Warning, "; ")
			if at := slices.IndexFunc(warnings, measure.ChangesMeaning); at >= 0 {
				c := j.untried(data, "", warnings[at])
				c.Text = "the scores of " + of + " mean what they seem to"
				out = append(out, c)
				break
			}
		}
	}
	return out
}

func (j *judge) untried(data, transform, why string) Claim {
	nan := math.NaN()
	return Claim{State: Undecided, Text: j.Score, Data: data, Transform: transform, Estimate: resample.Estimate{Mean: nan, Low: nan, High: nan}, Limit: nan, Why: why}
}

// valuesUpTo returns the values of a transformation up to the policy's strength, and why they are
// not enough, or "".
func (j *judge) valuesUpTo(model, data, transform string) (tried []string, inside []between, why string) {
	var parameters []string
	for v := range j.values {
		if v.model == model && v.data == data && v.transform == transform {
			parameters = append(parameters, v.parameter)
		}
	}
	return j.upTo(transform, parameters, float64(j.Policy.Transforms[transform]))
}

// A between is a value of a parameter that was not tried, between two that were.
type between struct {
	name      string  // such as "10, between 5 and 15"
	low, high string  // the neighbours that were tried
	weight    float64 // of high; that of low is 1 - weight
}

// mean returns the value between those at the neighbours, in proportion.
func (b between) mean(low, high float64) float64 { return (1-b.weight)*low + b.weight*high }

// claims returns those at the value between from those at the neighbours. So are the ends of their
// intervals: the mean of two values of a sample varies less than that at a value, which is not known.
func (b between) claims(low, high []Claim) []Claim {
	estimate := func(x, y resample.Estimate) resample.Estimate {
		return resample.Estimate{Mean: b.mean(x.Mean, y.Mean), Low: b.mean(x.Low, y.Low), High: b.mean(x.High, y.High)}
	}
	out := slices.Clone(low)
	for i := range out {
		c, other := &out[i], high[i]
		c.Parameter, c.N = b.name, min(c.N, other.N)
		c.Estimate, c.wide = estimate(c.Estimate, other.Estimate), estimate(c.wide, other.wide)
		c.State, c.Why = cmp.Or(c.State, other.State), cmp.Or(c.Why, other.Why)
	}
	return out
}

// upTo returns the values of a parameter whose strength is at most limit, in order, the limit itself
// where it lies between two values, and why the values do not reach it, or "".
func (j *judge) upTo(transform string, parameters []string, limit float64) (kept []string, inside []between, why string) {
	if len(parameters) == 0 {
		return nil, nil, "it was not measured on these data"
	}
	slices.SortFunc(parameters, func(a, b string) int {
		return cmp.Or(cmp.Compare(strengthOf(a), strengthOf(b)), strings.Compare(a, b))
	})
	parameters = slices.Compact(parameters)
	if math.IsInf(limit, 1) {
		return parameters, nil, ""
	}
	neutral, err := j.Neutral(transform)
	if err != nil {
		return nil, nil, "which strength its values have is not known: write all"
	}
	largest := map[bool]float64{} // on each side of the neutral value
	for _, p := range parameters {
		v, err := strconv.ParseFloat(p, 64)
		if err != nil {
			return nil, nil, "it has no list of values, so its strength is not known: write all, or give it values in the study"
		}
		side := v > neutral
		largest[side] = max(largest[side], math.Abs(v-neutral))
		if math.Abs(v-neutral) <= limit*(1+1e-9) {
			kept = append(kept, p)
		}
	}
	for _, side := range []bool{true, false} {
		reached := slices.ContainsFunc(kept, func(p string) bool {
			v := strengthOf(p)
			return math.Abs(math.Abs(v-neutral)-limit) <= 1e-9*max(1, limit) && (v > neutral) == side
		})
		at, tried := largest[side]
		if !tried || reached || limit == 0 {
			continue
		}
		wanted := neutral - limit
		if side {
			wanted = neutral + limit
		}
		if at < limit {
			return kept, inside, fmt.Sprintf("it was tried up to %v, and the policy asks for %v: add the value %v to the study", at, limit, wanted)
		}
		b, ok := neighbours(parameters, wanted, neutral)
		if !ok {
			return kept, inside, fmt.Sprintf("it was not tried at %v: add this value to the study", wanted)
		}
		inside = append(inside, b)
	}
	return kept, inside, ""
}

// strengthOf returns the value of a parameter, 0 if it is no number.
func strengthOf(parameter string) float64 {
	v, _ := strconv.ParseFloat(parameter, 64)
	return v
}

// neighbours returns a value between two of the parameters, which are in order and on one side of
// the neutral value; false if it is between none.
func neighbours(parameters []string, value, neutral float64) (between, bool) {
	at := slices.IndexFunc(parameters, func(p string) bool { return strengthOf(p) > value })
	if at <= 0 {
		return between{}, false
	}
	low, high := parameters[at-1], parameters[at]
	a, b := strengthOf(low), strengthOf(high)
	if a < neutral && b > neutral {
		return between{}, false
	}
	return between{fmt.Sprintf("%v, between %s and %s", value, low, high), low, high, (value - a) / (b - a)}, true
}

// ofValue returns the claims on the score in a view: of all samples and of each group.
func (j *judge) ofValue(v view, alpha float64) []Claim {
	if j.whole != nil {
		return j.ofWhole(v, alpha)
	}
	var out []Claim
	better := 1.
	if j.statistic.Direction == measure.Lower {
		better = -1
	}
	own := j.values[v]
	if j.Loss != nil {
		reference := view{cmp.Or(j.Reference, v.model), v.data, v.transform, v.parameter}
		against := "against " + j.Reference
		if j.Reference == "" {
			reference = view{v.model, v.data, "", ""}
			against = "against clean"
		}
		differences := map[int]float64{}
		for i, x := range j.values[reference] {
			if y, ok := own[i]; ok {
				differences[i] = better * (x - y)
			}
		}
		within := measure.MinusOneToOne
		if !j.statistic.Range.Bounded() || j.statistic.Range.High-j.statistic.Range.Low != 1 {
			within = measure.AnyNumber
		}
		name := j.Score
		if v.transform == "" {
			name = "accuracy.clean"
		}
		base := Claim{Text: LossOf + fmt.Sprintf("%s %s <= %v", name, against, *j.Loss), Limit: *j.Loss, AtMost: true}
		out = append(out, j.divide(base, v, differences, within, alpha)...)
	}
	if j.Least != nil && v.transform != "" {
		operator := ">="
		if better < 0 {
			operator = "<="
		}
		base := Claim{Text: fmt.Sprintf("%s %s %v", j.Score, operator, *j.Least), Limit: *j.Least, AtMost: better < 0}
		out = append(out, j.divide(base, v, own, j.statistic.Range, alpha)...)
	}
	return out
}

// divide makes a claim on values of all samples, and of each group.
func (j *judge) divide(base Claim, v view, values map[int]float64, within measure.Range, alpha float64) []Claim {
	base.Data, base.Transform, base.Parameter = v.data, v.transform, v.parameter
	claim := func(group string, of []float64) Claim {
		c := base
		c.Group, c.N = group, len(of)
		c.Estimate, c.wide = resample.Mean(of, within, 0.05), resample.Mean(of, within, alpha)
		if len(of) == 0 {
			c.State, c.Why = Undecided, "no values of these samples are kept of both models"
		} else if total := j.total[v]; group == "" && len(of) < total {
			c.Why = fmt.Sprintf("values are kept of %d of %d samples: set samples: true in the study", len(of), total)
		}
		return c
	}
	var all []float64
	for _, i := range slices.Sorted(maps.Keys(values)) {
		all = append(all, values[i])
	}
	out := []Claim{claim("", all)}
	for _, g := range j.Groupings[v.data] {
		if !slices.Contains(j.Groups, g.Column) {
			continue
		}
		for i, of := range g.Divide(values) {
			out = append(out, claim(g.Column+"="+g.Groups[i], of))
		}
	}
	return out
}

// keeps returns the claims of a tolerance, from the intervals of the scores: at each value of a
// transformation of the policy up to its strength, else at every value.
func (j *judge) keeps(model, data string, t scores.Tolerance, alpha float64) []Claim {
	byTransform := map[string]map[string]scores.Row{}
	for _, r := range j.Rows {
		s := t.Selector
		of := r.Model == model || r.OtherModel == model && (j.Reference == "" || r.Model == j.Reference)
		if !of || r.Data != data || r.Measure != s.Measure || r.Statistic != s.Statistic || r.Factor != "" || r.Variant != "" ||
			s.Layer != "" && r.Layer != s.Layer || s.Transform != "" && r.Transform != s.Transform {
			continue
		}
		if s.Transform == "" && len(j.Policy.Transforms) > 0 {
			if _, named := j.Policy.Transforms[r.Transform]; !named {
				continue
			}
		}
		if byTransform[r.Transform] == nil {
			byTransform[r.Transform] = map[string]scores.Row{}
		}
		key := r.Parameter + "\x00" + r.Layer + "\x00" + r.OtherModel
		if known, ok := byTransform[r.Transform][key]; !ok || r.Trial == scores.MeanOverTrials && known.Trial != scores.MeanOverTrials {
			byTransform[r.Transform][key] = r
		}
	}
	var out []Claim
	factor := distuv.UnitNormal.Quantile(1-alpha/2) / distuv.UnitNormal.Quantile(0.975)
	for _, transform := range slices.Sorted(maps.Keys(byTransform)) {
		rows := byTransform[transform]
		limit := math.Inf(1)
		if s, named := j.Policy.Transforms[transform]; named {
			limit = float64(s)
		}
		var parameters []string
		for _, r := range rows {
			if r.Parameter != "" || len(rows) == 1 || !slices.ContainsFunc(slices.Collect(maps.Values(rows)), func(o scores.Row) bool { return o.Layer == r.Layer && o.Parameter != "" }) {
				parameters = append(parameters, r.Parameter)
			}
		}
		kept, inside, why := j.upTo(transform, parameters, limit)
		for _, b := range inside {
			for _, low := range slices.Collect(maps.Values(rows)) {
				key := "\x00" + low.Layer + "\x00" + low.OtherModel
				high, ok := rows[b.high+key]
				if !ok || low.Parameter != b.low {
					continue
				}
				low.Parameter, low.N = b.name, min(low.N, high.N)
				low.Value, low.Low, low.High = b.mean(low.Value, high.Value), b.mean(low.Low, high.Low), b.mean(low.High, high.High)
				rows[b.name+key] = low
			}
			kept = append(kept, b.name)
		}
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			r := rows[key]
			if !slices.Contains(kept, r.Parameter) {
				continue
			}
			c := Claim{Text: t.String(), Data: data, Transform: transform, Parameter: r.Parameter, Estimate: resample.Estimate{Mean: r.Value, Low: r.Low, High: r.High},
				N: r.N, Limit: t.Limit, AtMost: t.AtMost}
			if r.Layer != "" && t.Selector.Layer == "" {
				c.Group = r.Layer
			}
			c.wide = resample.Estimate{Mean: r.Value, Low: r.Value - factor*(r.Value-r.Low), High: r.Value + factor*(r.High-r.Value)}
			if math.IsNaN(r.Low) || math.IsNaN(r.High) {
				c.State, c.Why = Undecided, "the score has no interval"
			}
			out = append(out, c)
		}
		if why != "" {
			c := j.untried(data, transform, why)
			c.Text = t.String()
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		c := j.untried(data, t.Selector.Transform, "the run has no such score")
		c.Text = t.String()
		out = append(out, c)
	}
	return out
}
