package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/scores"
)

func failuresCommand() *cobra.Command {
	var f failuresFlags
	c := &cobra.Command{
		Use:   "failures RUN",
		Short: "List the samples that a model gets wrong, and which groups of samples fail more than the rest",
		Long: `Lists the samples that a model gets wrong, from failures.csv of a run folder: first the broken ones,
which are right on the clean image and wrong when it is transformed, those with the most probable
wrong class first; then those whose class changes (of data without labels), or less than half of
whose boxes or class map stays; then those that are wrong on the clean image. Above them stand the groups of samples that a transformation breaks more often
than the rest, and the pairs of classes that it confuses most.

--paths prints the files alone, each once, for a script that relabels them or trains on them.`,
		Example: "  noether failures runs/first\n" +
			"  noether failures runs/first --model int8 --transform fog --group 'brightness=12.3 to 80.1'\n" +
			"  noether failures runs/first --kind wrong --least 0.95 --paths > relabel.txt",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if f.kind != "" && !slices.Contains(scores.MistakeKinds, scores.MistakeKind(f.kind)) {
				return usagef(c, "--kind is %q: use one of %v", f.kind, scores.MistakeKinds)
			}
			column, group, ok := strings.Cut(f.group, "=")
			if f.group != "" && !ok {
				return usagef(c, "--group is %q: write PROPERTY=GROUP, such as label=cat", f.group)
			}
			all, groups, record, err := readMistakes(args[0])
			if err != nil {
				return err
			}
			if err := f.check(record, all, groups, column, group); err != nil {
				return err
			}
			all = slices.DeleteFunc(all, func(m scores.Mistake) bool {
				of := m.Groups[column]
				if column == "label" {
					of = m.Label
				}
				return !f.selects(m.Model, m.Data, m.Transform) || f.kind != "" && string(m.Kind) != f.kind || m.Cost < f.least || f.group != "" && of != group
			})
			sortForDisplay(groups)
			groups = slices.DeleteFunc(groups, func(g scores.MistakeGroup) bool { return !f.selects(g.Model, g.Data, g.Transform) })
			if f.paths {
				if terminalWidth(os.Stdout) > 0 {
					return printSamplePaths(stdout, all)
				}
				return printSamplePaths(os.Stdout, all)
			}
			return show(f.json, mistakesJSON(all, groups), func() error { return f.print(stdout, all, groups) })
		},
	}
	p := c.Flags()
	p.StringVar(&f.kind, "kind", "", "only samples of this kind: broken, changed or wrong")
	p.StringVar(&f.model, "model", "", "only of this model")
	p.StringVar(&f.data, "data", "", "only of this data set")
	p.StringVar(&f.transform, "transform", "", "only under this transformation")
	p.StringVar(&f.group, "group", "", "only of this group: PROPERTY=GROUP")
	p.Float64Var(&f.least, "least", 0, "only samples that cost at least this: the probability of the wrong class")
	p.IntVar(&f.limit, "limit", 20, "samples, and groups, in the tables")
	p.BoolVar(&f.paths, "paths", false, "print only the paths, each once")
	addJSON(c, &f.json)
	return c
}

type failuresFlags struct {
	kind, model, data, transform, group string
	least                               float64
	limit                               int
	paths, json                         bool
}

func (f *failuresFlags) selects(model, data, transform string) bool {
	is := func(want, name string) bool { return want == "" || want == name }
	return is(f.model, model) && is(f.data, data) && is(f.transform, transform)
}

// readMistakes reads failures.csv and failure-groups.csv of a run folder.
func readMistakes(dir string) ([]scores.Mistake, []scores.MistakeGroup, scores.Record, error) {
	record, err := scores.ReadRecord(filepath.Join(dir, "run.json"))
	if err != nil {
		return nil, nil, record, fmt.Errorf("%s is not a run folder: %w", dir, err)
	}
	var all []scores.Mistake
	var groups []scores.MistakeGroup
	read := func(name string, read func(io.Reader) error) error {
		path := filepath.Join(dir, name)
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		if sum, ok := record.Files[name]; ok {
			if err := sum.Verify(path); err != nil {
				return err
			}
		}
		if err := read(file); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	err = read("failures.csv", func(r io.Reader) (err error) { all, err = scores.ReadMistakes(r); return err })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, record, fmt.Errorf("%s has no failures.csv: its study lacks the measures accuracy, effective-invariance and dense-equivariance, or it is unfinished or of an earlier version; run the study again", dir)
	}
	if err == nil {
		err = read("failure-groups.csv", func(r io.Reader) (err error) { groups, err = scores.ReadMistakeGroups(r); return err })
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // no transformation breaks a sample
		}
	}
	return all, groups, record, err
}

// check returns an error if the run lacks a name that the flags give, such as a misspelt one, which
// would select nothing.
func (f *failuresFlags) check(rec scores.Record, all []scores.Mistake, groups []scores.MistakeGroup, column, group string) error {
	var models, data, transforms []string
	for _, m := range rec.Models {
		models = append(models, m.Name)
	}
	for _, d := range rec.Data {
		data = append(data, d.Name)
	}
	for _, t := range rec.Transforms {
		transforms = append(transforms, t.Name)
	}
	of := map[string][]string{} // groups by property
	for _, m := range all {
		of["label"] = append(of["label"], m.Label)
		for property, group := range m.Groups {
			of[property] = append(of[property], group)
		}
	}
	for _, g := range groups {
		of[g.Column] = append(of[g.Column], g.Group)
	}
	delete(of, scores.ClassPair)
	for property := range of {
		slices.Sort(of[property])
		of[property] = slices.DeleteFunc(slices.Compact(of[property]), func(g string) bool { return g == "" })
	}
	for _, c := range []struct {
		flag, name string
		known      []string
	}{
		{"--model", f.model, models}, {"--data", f.data, data}, {"--transform", f.transform, transforms},
		{"--group", column, slices.Sorted(maps.Keys(of))}, {"--group " + column, group, of[column]},
	} {
		if c.name != "" && !slices.Contains(c.known, c.name) {
			return fmt.Errorf("%s: the failures have no %q; %s", c.flag, c.name, config.Suggest(c.name, c.known))
		}
	}
	return nil
}

func printSamplePaths(w io.Writer, all []scores.Mistake) error {
	printed := map[string]bool{}
	for _, m := range all {
		if printed[m.Path] {
			continue
		}
		printed[m.Path] = true
		if _, err := fmt.Fprintln(w, m.Path); err != nil {
			return err
		}
	}
	return nil
}

func (f *failuresFlags) print(w io.Writer, all []scores.Mistake, groups []scores.MistakeGroup) error {
	table := newTable(w)
	before, after := "right before", "of these broken"
	if slices.ContainsFunc(groups, func(g scores.MistakeGroup) bool { return g.Kind == scores.Changed }) {
		before, after = "samples", "broken or changed"
	}
	table.printf("group\tof\t%s\t%s\tmore than the rest\n", before, after)
	worse, pairs := 0, 0
	for _, g := range groups {
		gap := ""
		switch {
		case g.Column == scores.ClassPair:
			if pairs++; pairs > f.limit/2 {
				continue
			}
		case g.Gap.Low > 0:
			if worse++; worse > f.limit {
				continue
			}
			gap = fmt.Sprintf("%+.1f points [%+.1f, %+.1f]", 100*g.Gap.Mean, 100*g.Gap.Low, 100*g.Gap.High)
		default:
			continue
		}
		table.printf("%s\t%s\t%d\t%s\t%s\n", g.Column+" "+g.Group, g.Model+", "+g.Data+", "+g.Transform, g.N,
			fmt.Sprintf("%.1f %% [%.1f, %.1f]", 100*g.Share.Mean, 100*g.Share.Low, 100*g.Share.High), gap)
	}
	if worse+pairs > 0 {
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if len(groups) > 0 {
		fmt.Fprintf(w, "%s that fail more than the rest (95 %% intervals, corrected for the number of groups)\n\n", plural.Of(worse, "group"))
	}
	table = newTable(w)
	table.printf("kind\tcost\tlabel\tpredicted\tof\tpath\n")
	for _, m := range all[:min(len(all), f.limit)] {
		what, predicted := m.Model+", "+m.Data, m.Clean
		if m.Transform != "" {
			predicted = m.Moved
			if what += ", " + m.Transform; m.Parameter != "" {
				what += "=" + m.Parameter
			}
		}
		table.printf("%s\t%s\t%s\t%s\t%s\t%s\n", string(m.Kind), fmt.Sprintf("%.3f", m.Cost), m.Label, predicted, what, m.Path)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %d; --limit shows more, failures.csv has all\n", min(len(all), f.limit), len(all))
	return err
}

// sortForDisplay puts the groups that are broken more often than the rest first, by the least that
// the difference may be, and the most frequent pairs of classes last.
func sortForDisplay(groups []scores.MistakeGroup) {
	slices.SortStableFunc(groups, func(a, b scores.MistakeGroup) int {
		pairA, pairB := a.Column == scores.ClassPair, b.Column == scores.ClassPair
		switch {
		case pairA && pairB:
			return cmp.Compare(b.Share.Mean*float64(b.N), a.Share.Mean*float64(a.N))
		case pairA:
			return 1
		case pairB:
			return -1
		}
		return cmp.Compare(b.Gap.Low, a.Gap.Low)
	})
}

// mistakesJSON returns the failures and groups for JSON, with null in place of NaN.
func mistakesJSON(all []scores.Mistake, groups []scores.MistakeGroup) any {
	number := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	failures, by := []map[string]any{}, []map[string]any{}
	for _, m := range all {
		failures = append(failures, map[string]any{"kind": m.Kind, "cost": number(m.Cost), "path": m.Path, "label": m.Label, "predicted_clean": m.Clean,
			"predicted_moved": m.Moved, "confidence_clean": number(m.CleanConfidence), "confidence_moved": number(m.MovedConfidence), "transform": m.Transform,
			"parameter": m.Parameter, "trial": m.Trial, "model": m.Model, "data": m.Data, "index": m.Index, "groups": m.Groups})
	}
	for _, g := range groups {
		by = append(by, map[string]any{"data": g.Data, "model": g.Model, "transform": g.Transform, "column": g.Column, "group": g.Group, "n": g.N,
			"share": number(g.Share.Mean), "low": number(g.Share.Low), "high": number(g.Share.High),
			"gap": number(g.Gap.Mean), "gap_low": number(g.Gap.Low), "gap_high": number(g.Gap.High)})
	}
	return map[string]any{"failures": failures, "groups": by}
}
