package spec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/transform"
)

// A Search chooses the values of a transformation's parameter: `values: auto`. The first round
// divides the range into quarters, on each side of the neutral value, at which the transformation
// changes nothing. Each further round divides into quarters the intervals in which scores leave
// the tolerances of the transformation.
type Search struct {
	neutral, low, high float64
	param              transform.Param
	list               *config.Node // of values in the study file
	kind, value        *config.Node // of the transformation
}

const (
	// searchParts is the number of parts into which a round of a search divides an interval.
	searchParts = 4
	// SearchRounds is the largest number of rounds of a search. The last one divides the range
	// into 256 parts.
	SearchRounds = 4
	// searchPrecision ends a search where the interval between two values is this part of the 95 %
	// interval of the breaking point.
	searchPrecision = 4
)

// takeSearch replaces `values: auto` in the arguments of a transformation by the values of the
// first round. It returns the arguments, and nil without such a key.
func takeSearch(all kinds, kind, value *config.Node) (*config.Node, *Search, error) {
	at := autoValues(value)
	if at == nil {
		return value, nil, nil
	}
	auto := at.Get("values")
	i := slices.IndexFunc(all, func(k transform.Kind) bool { return k.Name == kind.Text })
	neutral, known := transform.Neutral(kind.Text)
	if i < 0 || !known {
		return nil, nil, auto.Errorf("values: auto looks for a strength, and at which value %s changes nothing is not known: list the values", kind.Text)
	}
	s := &Search{neutral: neutral, kind: kind}
	value = value.Clone()
	arguments := value
	if at = autoValues(value); at != value {
		for _, p := range value.Pairs {
			if p.Value == at {
				s.param, _ = all[i].Param(p.Key.Text)
			}
		}
	} else if len(all[i].Short) > 0 {
		s.param, _ = all[i].Param(all[i].Short[0])
	}
	if s.param.Name == "" || s.param.Options != nil || s.param.Text || s.param.Constant {
		return nil, nil, auto.Errorf("values: auto needs a parameter that is a number and may vary")
	}
	if err := s.setRange(kind.Text, at, auto); err != nil {
		return nil, nil, err
	}
	s.list = auto.Clone()
	*at = *at.Without("range")
	at.SetNode("values", s.list)
	s.value = arguments
	return arguments, s, s.setValues(s.firstRound())
}

// autoValues returns the mapping of a transformation's arguments that has `values: auto`: the
// arguments themselves or those of one parameter; nil without one.
func autoValues(n *config.Node) *config.Node {
	if v := n.Get("values"); v != nil && v.Kind == config.String && v.Text == "auto" {
		return n
	}
	for _, p := range n.Pairs {
		if v := p.Value.Get("values"); v != nil && v.Kind == config.String && v.Text == "auto" {
			return p.Value
		}
	}
	return nil
}

// setRange sets the range to the key range of the mapping n, or from the neutral value to the
// strongest.
func (s *Search) setRange(kind string, n, auto *config.Node) error {
	given := n.Get("range")
	if given == nil {
		strongest, ok := transform.Strongest(kind)
		if !ok {
			return auto.Errorf("%s has no strongest value: add a range, such as {values: auto, range: [0, 2]}", s.param.Name)
		}
		s.low, s.high = min(s.neutral, strongest), max(s.neutral, strongest)
		return nil
	}
	if given.Kind != config.List {
		return given.Errorf("a range has two ends, [low, high]")
	}
	d, err := decodeRange(given)
	if err != nil {
		return err
	}
	if err := s.param.Check(d); err != nil {
		return given.Errorf("%w", err)
	}
	if s.low, s.high = d.Low, d.High; s.low == s.high {
		return given.Errorf("the range of values: auto has no width")
	}
	return nil
}

// sides returns the parts of the range below and above the neutral value, as ends in the order of
// their strengths.
func (s *Search) sides() [][2]float64 {
	switch {
	case s.neutral <= s.low:
		return [][2]float64{{s.low, s.high}}
	case s.neutral >= s.high:
		return [][2]float64{{s.high, s.low}}
	}
	return [][2]float64{{s.neutral, s.low}, {s.neutral, s.high}}
}

func (s *Search) firstRound() []float64 {
	var out []float64
	for _, side := range s.sides() {
		for k := range searchParts + 1 {
			out = append(out, side[0]+(side[1]-side[0])*float64(k)/searchParts)
		}
	}
	return out
}

// setValues writes the list of values, in order and each once.
func (s *Search) setValues(values []float64) error {
	s.list.Kind, s.list.Text, s.list.Items = config.List, "", nil
	slices.Sort(values)
	for _, v := range values {
		text := strconv.FormatFloat(v, 'g', 10, 64)
		if n := len(s.list.Items); n > 0 && s.list.Items[n-1].Text == text {
			continue
		}
		item := s.list.Clone()
		item.Items, item.Kind, item.Text = nil, config.Float, text
		item.Float, _ = strconv.ParseFloat(text, 64)
		if err := s.param.Check(transform.Fixed(item.Float)); err != nil {
			return s.list.Errorf("%w", err)
		}
		s.list.Items = append(s.list.Items, item)
	}
	return nil
}

// values returns the values that have been chosen.
func (s *Search) values() []float64 {
	var out []float64
	for _, item := range s.list.Items {
		out = append(out, item.Float)
	}
	return out
}

// next returns the values of the next round for a breaking point, none if its place is known well
// enough.
func (s *Search) next(b scores.BreakingPoint) []float64 {
	if b.State != scores.Found {
		return nil
	}
	strengths := []float64{b.Smallest} // of the values on its side; 0 if the score there is known
	extent := 0.0
	for _, v := range s.values() {
		if strength := float64(b.Side) * (v - s.neutral); strength > 0 {
			strengths = append(strengths, strength)
			extent = max(extent, strength)
		}
	}
	slices.Sort(strengths)
	i := slices.IndexFunc(strengths, func(v float64) bool { return v > b.Strength })
	if i < 1 {
		return nil
	}
	low, high := strengths[i-1], strengths[i]
	enough := extent / math.Pow(searchParts, SearchRounds) * (1 + 1e-9)
	if width := min(b.High, b.Largest) - b.Low; width > 0 {
		enough = max(enough, width/searchPrecision)
	}
	if high-low <= enough {
		return nil
	}
	var out []float64
	for k := 1; k < searchParts; k++ {
		out = append(out, s.neutral+float64(b.Side)*(low+(high-low)*float64(k)/searchParts))
	}
	return out
}

// Searches returns the names of the transformations with `values: auto`.
func (s *Study) Searches() []string {
	var out []string
	for _, t := range s.Transforms {
		if t.Search != nil {
			out = append(out, t.Name)
		}
	}
	return out
}

// WholeRun returns an error if the study has a transformation with `values: auto`: a run of some of
// its samples or models does not know the scores that values are chosen by.
func (s *Study) WholeRun() error {
	if names := s.Searches(); len(names) > 0 {
		return fmt.Errorf("values: auto of %s chooses values by the scores of all samples and models, which a part of a run does not know: run the study as a whole, or list the values",
			strings.Join(names, ", "))
	}
	return nil
}

// Refine adds the values of the next round to the transformations with `values: auto`, given the
// cells of the values so far and the means over trials. It reports whether there are any.
func (s *Study) Refine(cells []scores.Cell) (more bool, err error) {
	return s.refine(func(t *Transform, tolerance scores.Tolerance) ([]scores.BreakingPoint, error) {
		return scores.BreakingPointsOfCells(cells, tolerance, func(string) (float64, error) { return t.Search.neutral, nil })
	})
}

func (s *Study) refine(pointsOf func(*Transform, scores.Tolerance) ([]scores.BreakingPoint, error)) (more bool, err error) {
	for i := range s.Transforms {
		t := &s.Transforms[i]
		if t.Search == nil {
			continue
		}
		values := t.Search.values()
		for _, tolerance := range t.Tolerances {
			points, err := pointsOf(t, tolerance)
			if err != nil {
				return false, fmt.Errorf("values: auto of %s: %w", t.Name, err)
			}
			for _, b := range points {
				values = append(values, t.Search.next(b)...)
			}
		}
		if err := t.Search.setValues(values); err != nil {
			return false, err
		}
		if len(t.Search.list.Items) == len(t.Cells) {
			continue
		}
		more, t.Cells = true, nil
		if err := t.setCells(s.lists.Transforms, t.Search.kind, t.Search.value); err != nil {
			return false, err
		}
	}
	return more, s.checkSize(s.node)
}

// decodeTolerances reads the key tolerance: a text or a list of texts.
func (t *Transform) decodeTolerances(n *config.Node) error {
	items := n.Items
	if n.Kind != config.List {
		items = []*config.Node{n}
	}
	if len(items) == 0 {
		return n.Errorf("tolerance is a text such as effective-invariance.ei >= 0.9, or a list of such texts")
	}
	for _, item := range items {
		text, err := item.Scalar()
		if err != nil {
			return err
		}
		tolerance, err := scores.ParseTolerance(text)
		if err != nil {
			return item.Errorf("%w", err)
		}
		if tolerance.Selector.Transform != "" {
			return item.Errorf("tolerance is of scores under the transformation that has it: leave out @%s", tolerance.Selector.Transform)
		}
		t.Tolerances = append(t.Tolerances, tolerance)
		t.positions = append(t.positions, item)
	}
	return nil
}

// checkTolerances returns an error if a tolerance is not of a statistic of the study's measures.
func (s *Study) checkTolerances() error {
	for _, t := range s.Transforms {
		for i, tolerance := range t.Tolerances {
			at, name := t.positions[i], tolerance.Selector.Measure
			k := slices.IndexFunc(s.Measures, func(m MeasureSpec) bool { return m.Name() == name })
			if k < 0 {
				var names []string
				for _, m := range s.Measures {
					names = append(names, m.Name())
				}
				return at.Errorf("the study has no measure %q; %s", name, config.Suggest(name, names))
			}
			var statistics []string
			for _, d := range s.Measures[k].Descriptor().Statistics {
				statistics = append(statistics, d.Name)
			}
			if !slices.Contains(statistics, tolerance.Selector.Statistic) {
				return at.Errorf("%s has no statistic %q; %s", name, tolerance.Selector.Statistic, config.Suggest(tolerance.Selector.Statistic, statistics))
			}
			_, ofSamples := s.Measures[k].Method.(measure.Measure)
			_, ofLayers := s.Measures[k].Method.(measure.Comparison)
			if t.Search != nil && !ofSamples && !ofLayers {
				return at.Errorf("%s needs all values at once, and values: auto chooses them one after the other: list the values", name)
			}
		}
	}
	return nil
}
