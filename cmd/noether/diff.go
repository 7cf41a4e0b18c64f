package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

func diffCommand(engine *engineFlags) *cobra.Command {
	var failIf, models, accepted []string
	var all, flips, asJSON bool
	var stirOptions stirFlags
	c := &cobra.Command{
		Use:   "diff RUN_A RUN_B",
		Short: "List the scores of two runs that differ by more than chance",
		Long: `Compares every score that both runs have. Where both were measured on the same samples in the same order
(the same data and seed) the interval is that of the paired difference. All differences are one family of claims: p-values and
intervals are corrected by Holm's method, and a difference is beyond chance if its corrected interval excludes 0. The scores that
got worse most come first.

With --fail-if it exits with 1 if a difference B - A meets the condition: if the whole interval of the difference, corrected for all
scores that the conditions name, is beyond the bound. A condition that ends in ! looks at the difference alone:
'accuracy.moved < -0.01!'. It also exits with 1 if the runs are not alike: in the samples (data), their number (n), the seed of the
random draws (seed), the values of a transformation (transforms) or the preprocessing of a model (preprocess); --accept names
those that may differ.

Where both runs have the measure accuracy or effective-invariance it also compares the predictions that both have kept, of the
first 500 samples or, with samples: true in the studies, of all, by the measure prediction-agreement: negative flips are samples
that A has right and B wrong. Conditions on prediction-agreement are then on its scores, not on differences.

With --stir it also computes STIR (similarity through inverted representations) of the models themselves: whether the second is
invariant where the first is, and the reverse. Conditions on stir are then on its scores, not on differences.`,
		Example: "  noether diff runs/approved runs/candidate\n" +
			"  noether diff runs/approved runs/candidate --fail-if 'prediction-agreement.negative-flips > 0.01'\n" +
			"  noether diff runs/approved runs/candidate --fail-if 'effective-invariance.ei < -0.02' --fail-if 'accuracy.moved < -0.01'\n" +
			"  noether diff runs/a runs/b --models resnet20=resnet32\n" +
			"  noether diff runs/approved runs/candidate --stir --fail-if 'stir.stir < 0.5'",
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, dirs []string) error {
			conditions, err := parseConditions(c, failIf)
			if err != nil {
				return err
			}
			renamed, err := parsePairs(models)
			if err != nil {
				return usagef(c, "--models: %v", err)
			}
			for _, kind := range accepted {
				if !slices.Contains(unlikeKinds, kind) {
					return usagef(c, "--accept %s: it must be one of %s", kind, strings.Join(unlikeKinds, ", "))
				}
			}
			if err := stirOptions.check(c); err != nil {
				return err
			}
			d, err := diffRuns(dirs[0], dirs[1], renamed)
			if err == nil {
				d.agreement, err = study.CompareRuns([2]string(dirs), d.models)
			}
			if err == nil && flips && len(d.agreement) == 0 {
				err = errors.New("--flips: " + noCommonPredictions)
			}
			if err == nil && stirOptions.on {
				d.stir, err = stirOptions.run(c.Context(), engine, dirs, d.models)
			}
			if err == nil {
				err = d.print(all, flips, asJSON)
			}
			if err != nil {
				return err
			}
			return checkConditions(conditions, d, accepted)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&failIf, "fail-if", nil, "fail if a difference B - A meets SCORE < NUMBER or SCORE > NUMBER with its whole corrected interval, or with ! at the end by its value; of stir and prediction-agreement the scores themselves are compared; may be given several times")
	f.StringSliceVar(&models, "models", nil, "A=B: which model of the second run a model of the first is compared with, where their names differ; B is compared with no other")
	f.BoolVar(&all, "all", false, "list every score, not just those that differ beyond chance")
	f.BoolVar(&flips, "flips", false, "fail unless predictions can be compared sample by sample, and add these scores to --json")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.StringSliceVar(&accepted, "accept", nil, "with --fail-if: compare runs that are not alike in data, n, seed, transforms or preprocess; see the text above")
	stirOptions.add(f)
	return c
}

func parseConditions(c *cobra.Command, texts []string) ([]scores.Condition, error) {
	var conditions []scores.Condition
	for _, text := range texts {
		condition, err := scores.ParseCondition(text)
		if err != nil {
			return nil, usagef(c, "--fail-if: %v", err)
		}
		conditions = append(conditions, condition)
	}
	return conditions, nil
}

type runsDifference struct {
	scores []scores.Difference
	models [][2]string // of the first run and of the second, as they are compared
	// records and studies are those of the two runs.
	records [2]scores.Record
	studies [2]*study.Study
	// agreement holds scores of prediction-agreement; nil without common predictions.
	agreement []scores.Row
	stir      *study.Result // STIR between the models; nil without --stir
}

// parsePairs parses the values A=B of --models.
func parsePairs(texts []string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, text := range texts {
		a, b, ok := strings.Cut(text, "=")
		if !ok || a == "" || b == "" {
			return nil, fmt.Errorf("%q is not A=B", text)
		}
		pairs[a] = b
	}
	return pairs, nil
}

// diffRuns compares two run folders. models has the names in the second run of models whose names
// differ. If it is empty and each run has one model, these are compared.
func diffRuns(dirA, dirB string, models map[string]string) (runsDifference, error) {
	var empty runsDifference
	a, recordA, err := study.ReadCells(dirA)
	if err != nil {
		return empty, err
	}
	b, recordB, err := study.ReadCells(dirB)
	if err != nil {
		return empty, err
	}
	if len(models) == 0 && len(recordA.Models) == 1 && len(recordB.Models) == 1 {
		models = map[string]string{recordA.Models[0].Name: recordB.Models[0].Name}
	}
	for from, to := range models {
		if !hasModel(recordA, from) {
			return empty, fmt.Errorf("--models %s=%s: %s has no model %q; it has %s", from, to, dirA, from, modelNames(recordA))
		}
		if !hasModel(recordB, to) {
			return empty, fmt.Errorf("--models %s=%s: %s has no model %q; it has %s", from, to, dirB, to, modelNames(recordB))
		}
	}
	out := runsDifference{models: comparedModels(recordA, recordB, models), records: [2]scores.Record{recordA, recordB}}
	if sameFolder(dirA, dirB) { // a model need not be compared with itself
		out.models = slices.DeleteFunc(out.models, func(m [2]string) bool { return m[0] == m[1] })
		if len(out.models) == 0 {
			return empty, fmt.Errorf("%s and %s are one run: name the models to compare, as in --models %s=OTHER; it has %s", dirA, dirB, recordA.Models[0].Name, modelNames(recordA))
		}
	}
	for i, dir := range []string{dirA, dirB} {
		if out.studies[i], err = study.Load(filepath.Join(dir, "study.yaml"), nil); err != nil {
			return empty, err
		}
	}
	pairs := map[string]string{}
	for _, m := range out.models {
		pairs[m[0]] = m[1]
	}
	out.scores = scores.Comparison{Models: pairs, Only: true, SameSamples: scores.SameSamples(recordA, recordB)}.Diff(a, b)
	if len(out.scores) == 0 {
		return empty, fmt.Errorf("%s and %s have no score in common (models %s and %s; see --models)", dirA, dirB, modelNames(recordA), modelNames(recordB))
	}
	return out, nil
}

// Of such a statistic scores.Distinct keeps one difference.
func untransformed(measure, statistic string) bool {
	return statisticOf(scores.Row{Measure: measure, Statistic: statistic}).Untransformed
}

// statisticOf describes the statistic of a row.
func statisticOf(r scores.Row) measure.StatisticDescriptor {
	return report.Measures(catalog.Descriptors()).Statistic(&r)
}

// comparedModels pairs models of the same name, or of the name in renamed. Models of a that b lacks
// are left out, and those whose namesake another one is compared with.
func comparedModels(a, b scores.Record, renamed map[string]string) [][2]string {
	taken := slices.Collect(maps.Values(renamed))
	var pairs [][2]string
	for _, m := range a.Models {
		to, given := renamed[m.Name]
		if !given && !slices.Contains(taken, m.Name) {
			to = m.Name
		}
		if to != "" && hasModel(b, to) {
			pairs = append(pairs, [2]string{m.Name, to})
		}
	}
	return pairs
}

// hasModel reports whether a run measured a model of this name.
func hasModel(r scores.Record, name string) bool {
	return slices.ContainsFunc(r.Models, func(m scores.ModelRecord) bool { return m.Name == name })
}

func modelNames(r scores.Record) string {
	var names []string
	for _, m := range r.Models {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// checkConditions returns an error if a condition of --fail-if is met, or if the runs are not alike
// in what a condition is about. All conditions are one family of claims.
func checkConditions(conditions []scores.Condition, d runsDifference, accepted []string) error {
	var gates []scores.Gate
	for _, condition := range conditions {
		on, values, err := d.tests(condition)
		if err != nil {
			return err
		}
		if !values {
			for _, u := range d.unlike(on) {
				if !slices.Contains(accepted, u.kind) {
					return fmt.Errorf("%s: the runs cannot be compared: %s; measure both alike, or accept it by --accept %s", condition, u.text, u.kind)
				}
			}
		}
		gates = append(gates, scores.Gate{Condition: condition, On: on})
	}
	var failed []string
	for i, met := range scores.Met(gates) {
		if len(met) == 0 {
			continue
		}
		if _, values, _ := d.tests(conditions[i]); values {
			failed = append(failed, fmt.Sprintf("%s: %s, the worst %.4g (%s)", conditions[i], plural.Of(len(met), "score"), met[0].Value, met[0].A.Describe()))
		} else {
			failed = append(failed, fmt.Sprintf("%s: %s, the largest %+.4g (%s)", conditions[i], plural.Of(len(met), "difference"), met[0].Value, met[0].A.Describe()))
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("conditions met: %s", strings.Join(failed, "; "))
	}
	return nil
}

// tests returns what a condition is on: differences or, with values true, the values of rows.
func (d runsDifference) tests(condition scores.Condition) (on []scores.Difference, values bool, err error) {
	switch name := condition.Selector.Measure; {
	case d.stir != nil && name == stirMeasure:
		on, err = condition.SelectValues(d.stir.Rows)
		return on, true, err
	case name == agreementMeasure && len(d.agreement) > 0:
		on, err = condition.SelectValues(d.agreement)
		return on, true, err
	case name == agreementMeasure && !slices.ContainsFunc(d.scores, func(s scores.Difference) bool { return s.A.Measure == name }):
		return nil, true, errors.New(condition.String() + ": " + noCommonPredictions)
	}
	on, err = condition.Select(d.scores)
	return scores.Distinct(on, untransformed), false, err
}

// print prints the differences (all, or those beyond chance), then prediction-agreement and STIR.
func (d runsDifference) print(all, flips, asJSON bool) error {
	d.scores = scores.Distinct(d.scores, untransformed)
	scores.Adjust(d.scores)
	if asJSON {
		return d.printJSON(all, flips)
	}
	d.printPairing()
	printDifferences(d.scores, all)
	if len(d.agreement) > 0 {
		fmt.Fprintln(stdout)
		printFlips(d.agreement)
	}
	if d.stir != nil {
		fmt.Fprintln(stdout)
		printShared(d.stir)
	}
	return nil
}

// printDifferences prints a table of the significant differences, or of all, and their number. What
// got worse most comes first.
func printDifferences(differences []scores.Difference, all bool) {
	beyond := 0
	t := textTable{header: []string{"score", "of", "A", "B", "B - A", "", "", "p"}}
	var lows, highs []string
	for _, d := range worstFirst(differences) {
		if d.Significant() {
			beyond++
		} else if !all {
			continue
		}
		low, high := d.Corrected()
		verdict := ""
		if h := harm(d); d.Significant() && h != 0 {
			verdict = map[bool]string{true: "worse", false: "better"}[h > 0]
		}
		t.rows = append(t.rows, []string{d.A.Measure + "." + d.A.Statistic, d.A.Describe(), fourDigits(d.A.Value), fourDigits(d.B.Value), signed(d.Value), "", verdict, probability(d.Adjusted)})
		lows, highs = append(lows, signed(low)), append(highs, signed(high))
	}
	t.align(2, 3, 4)
	lows, highs = alignPoints(lows), alignPoints(highs)
	for i := range t.rows {
		if strings.TrimSpace(lows[i]) != "" {
			t.rows[i][5] = fmt.Sprintf("[%s, %s]", lows[i], strings.TrimRight(highs[i], " "))
		}
	}
	if len(t.rows) > 0 || all {
		fmt.Fprint(stdout, t.write(terminalWidth(os.Stdout), 1))
	}
	fmt.Fprintf(stdout, "%d of %d scores differ beyond chance. Intervals and p are corrected by Holm's method for all %d: if nothing differed, any would be listed with a probability of at most 5 %%.\n",
		beyond, len(differences), len(differences))
}

// harm returns how much worse the second score of a difference is, as a fraction of the range of
// the statistic or, without one, of the larger score; negative if it is better, 0 if neither end of
// the range is better.
func harm(d scores.Difference) float64 {
	s := statisticOf(d.A)
	if s.Name == "clean" && d.A.Measure == "accuracy" { // which says nothing of robustness, so its descriptor has no better end
		s.Direction = measure.Higher
	}
	scale := max(math.Abs(d.A.Value), math.Abs(d.B.Value))
	if s.Range.Bounded() {
		scale = s.Range.High - s.Range.Low
	}
	switch {
	case s.Direction == measure.Neutral || scale == 0:
		return 0
	case s.Direction == measure.Lower:
		return d.Value / scale
	}
	return -d.Value / scale
}

// worstFirst returns differences in the order of the harm; those without one come last.
func worstFirst(differences []scores.Difference) []scores.Difference {
	return slices.SortedStableFunc(slices.Values(differences), func(a, b scores.Difference) int {
		x, y := harm(a), harm(b)
		if (x == 0) != (y == 0) {
			return cmp.Compare(math.Abs(y), math.Abs(x))
		}
		return cmp.Compare(y, x)
	})
}

// probability returns a p-value with two digits, or "" if it is not a number.
func probability(p float64) string {
	switch {
	case math.IsNaN(p):
		return ""
	case p < 0.0001:
		return "<0.0001"
	}
	return fmt.Sprintf("%.2g", p)
}

// signed returns a number of four digits with its sign, or "" if it is not a number.
func signed(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return fmt.Sprintf("%+.4g", v)
}

// With --stir or --flips printJSON prints an object that holds the list and further rows.
func (d runsDifference) printJSON(all, flips bool) error {
	type line struct {
		A          scores.Row `json:"a"`
		B          scores.Row `json:"b"`
		Difference interval   `json:"difference"`
		Paired     bool       `json:"paired"`     // the interval is that of the paired difference
		P          number     `json:"p"`          // below 0.05 if the interval of the difference excludes 0
		Adjusted   number     `json:"p_adjusted"` // p after Holm's correction for all differences
		Beyond     bool       `json:"beyond"`     // the adjusted p is below 0.05
	}
	lines := []line{}
	for _, s := range worstFirst(d.scores) {
		if all || s.Significant() {
			lines = append(lines, line{s.A, s.B, interval{number(s.Value), number(s.Low), number(s.High)}, s.Paired, number(s.P), number(s.Adjusted), s.Significant()})
		}
	}
	if d.stir == nil && !flips {
		return printJSON(lines)
	}
	out := struct {
		Differences []line       `json:"differences"`
		STIR        []scores.Row `json:"stir,omitempty"`
		Flips       []scores.Row `json:"flips,omitempty"`
	}{Differences: lines}
	if d.stir != nil {
		out.STIR = d.stir.Rows
	}
	if flips {
		out.Flips = d.agreement
	}
	return printJSON(out)
}
