package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

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
