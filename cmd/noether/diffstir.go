package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/tempfolder"
	"github.com/noether-ml/noether/scores"
)

const stirMeasure = "stir"

type stirFlags struct {
	on            bool // --stir
	layer         string
	data          []string
	images, steps int
}

func (s *stirFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&s.on, "stir", false, "also measure the invariances that the models share, in both directions")
	f.StringVar(&s.layer, "stir-layer", "", "with --stir: a layer of both models, or a pattern (default: the penultimate)")
	f.StringSliceVar(&s.data, "stir-data", nil, "with --stir: names or patterns of data that both runs have (default: the first)")
	f.IntVar(&s.images, "stir-images", 100, "with --stir: largest number of images")
	f.IntVar(&s.steps, "stir-steps", 150, "with --stir: steps of an inversion")
}

func (s *stirFlags) check(c *cobra.Command) error {
	if !s.on {
		for _, name := range []string{"stir-layer", "stir-data", "stir-images", "stir-steps"} {
			if c.Flags().Changed(name) {
				return usagef(c, "--%s needs --stir", name)
			}
		}
	}
	if s.images < 2 {
		return usagef(c, "--stir-images is %d: it must be at least 2", s.images)
	}
	if s.steps < 1 {
		return usagef(c, "--stir-steps is %d: it must be at least 1", s.steps)
	}
	return nil
}

// run measures STIR between pairs of models by a study in a temporary folder.
func (s *stirFlags) run(ctx context.Context, engine *engineFlags, dirs []string, models [][2]string) (*study.Result, error) {
	shared, err := s.study(dirs, models)
	if err != nil {
		return nil, fmt.Errorf("--stir: %w", err)
	}
	o, err := engine.open()
	if err != nil {
		return nil, err
	}
	dir, remove, err := tempfolder.New("stir")
	if err != nil {
		return nil, err
	}
	defer remove()
	o.FailFast = true
	done := showOrLogProgress(&o)
	result, err := study.Run(ctx, shared, dir, o)
	done()
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("--stir: %w", err)
	case len(result.Rows) == 0:
		return nil, fmt.Errorf("--stir: the models have no layers that can be compared")
	}
	return result, nil
}

// study returns the study that measures STIR between the pairs models of the runs in dirs.
func (s *stirFlags) study(dirs []string, models [][2]string) (*study.Study, error) {
	var studies [2]*study.Study
	for i, dir := range dirs {
		var err error
		if studies[i], err = study.Load(filepath.Join(dir, "study.yaml"), nil); err != nil {
			return nil, err
		}
	}
	return spec.STIRStudy(studies[0], studies[1], spec.STIROptions{Models: models, Data: s.data, Layer: s.layer, Images: s.images, Steps: s.steps})
}

// printShared prints a row for each direction, layer and data set, and the warnings.
func printShared(r *study.Result) {
	fmt.Fprintln(stdout, "STIR: the similarity, in the second model, of images that are the same in the first")
	t := textTable{header: []string{"of", "STIR", "", "null", "CKA", "agreement", "distance"}}
	printPairs(r.Rows, "stir", sameComparison, t, func(row scores.Row, other func(string) scores.Row) []string {
		line := []string{comparisonTitle(row), fourDigits(row.Value), intervalOf(row).bounds(), fourDigits(row.Null)}
		for _, statistic := range []string{"cka", "agreement", "representation-distance"} {
			line = append(line, fourDigits(other(statistic).Value))
		}
		return line
	}, 1, 3, 4, 5, 6)
}

// fourDigits returns v with four significant digits, or "" if it is NaN.
func fourDigits(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return fmt.Sprintf("%.4g", v)
}

func sameComparison(a, b scores.Row) bool {
	return a.Model == b.Model && a.OtherModel == b.OtherModel && a.Layer == b.Layer && a.Data == b.Data && a.Variant == b.Variant
}

func comparisonTitle(r scores.Row) string {
	parts := []string{r.Model + " → " + r.OtherModel}
	for _, p := range []string{r.Layer, r.Data} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ", ")
}
