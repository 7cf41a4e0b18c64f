package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/scores"
)

func diffCommand(engine *engineFlags) *cobra.Command {
	var failIf, models []string
	var all, flips, asJSON bool
	var stirOptions stirFlags
	c := &cobra.Command{
		Use:   "diff RUN_A RUN_B",
		Short: "List the scores of two runs that differ by more than chance",
		Long: `Compares every score that both runs have. Where both were measured on the same samples in the same order
(the same data and seed) the interval is that of the paired difference. A difference is beyond chance if its 95 % interval
excludes 0. With --fail-if it exits with 1 if a difference B - A beyond chance meets the condition. A condition that ends in !
also counts differences within chance: 'accuracy.moved < -0.01!'.

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
			return checkConditions(conditions, d)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&failIf, "fail-if", nil, "fail if a difference B - A beyond chance meets SCORE < NUMBER or SCORE > NUMBER, with ! at the end also one within chance; of stir and prediction-agreement the scores themselves are compared; may be given several times")
	f.StringSliceVar(&models, "models", nil, "A=B: which model of the second run a model of the first is compared with, where their names differ")
	f.BoolVar(&all, "all", false, "list every score, not just those that differ beyond chance")
	f.BoolVar(&flips, "flips", false, "fail unless predictions can be compared sample by sample, and add these scores to --json")
	f.BoolVar(&asJSON, "json", false, "print JSON")
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
	differences := scores.Comparison{Models: models, SameSamples: scores.SameSamples(recordA, recordB)}.Diff(a, b)
	if len(differences) == 0 {
		return empty, fmt.Errorf("%s and %s have no score in common (models %s and %s; see --models)", dirA, dirB, modelNames(recordA), modelNames(recordB))
	}
	return runsDifference{scores: differences, models: comparedModels(recordA, recordB, models)}, nil
}

// Of such a statistic scores.Distinct keeps one difference.
func untransformed(measure, statistic string) bool {
	for _, d := range catalog.Descriptors() {
		if d.Name == measure {
			s, _ := d.Statistic(statistic)
			return s.Untransformed
		}
	}
	return false
}

// comparedModels pairs models of the same name, or of the name in renamed. Models of a that b lacks
// are left out.
func comparedModels(a, b scores.Record, renamed map[string]string) [][2]string {
	var pairs [][2]string
	for _, m := range a.Models {
		to := m.Name
		if other, ok := renamed[m.Name]; ok {
			to = other
		}
		if hasModel(b, to) {
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

// checkConditions returns an error if a condition of --fail-if is met.
func checkConditions(conditions []scores.Condition, d runsDifference) error {
	var failed []string
	for _, condition := range conditions {
		why, err := checkCondition(condition, d)
		if err != nil {
			return err
		}
		if why != "" {
			failed = append(failed, fmt.Sprintf("%s: %s", condition, why))
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("conditions met: %s", strings.Join(failed, "; "))
	}
	return nil
}

// checkCondition returns why a condition of --fail-if is met; "" if it is not.
func checkCondition(condition scores.Condition, d runsDifference) (string, error) {
	var rows []scores.Row // if set, the condition is on the values of these rows, not on differences
	switch measure := condition.Selector.Measure; {
	case d.stir != nil && measure == stirMeasure:
		rows = d.stir.Rows
	case measure == agreementMeasure && len(d.agreement) > 0:
		rows = d.agreement
	case measure == agreementMeasure && !slices.ContainsFunc(d.scores, func(s scores.Difference) bool { return s.A.Measure == measure }):
		return "", errors.New(condition.String() + ": " + noCommonPredictions)
	}
	if rows != nil {
		found, err := condition.FailingValues(rows)
		if err != nil || len(found) == 0 {
			return "", err
		}
		return fmt.Sprintf("%s, the worst %.4g (%s)", plural.Of(len(found), "score"), found[0].Value, found[0].Describe()), nil
	}
	found, err := condition.Failing(d.scores)
	found = scores.Distinct(found, untransformed)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return fmt.Sprintf("%s, the largest %+.4g (%s)", plural.Of(len(found), "difference"), found[0].Value, found[0].A.Describe()), nil
}

// print prints the differences (all, or those beyond chance), then prediction-agreement and STIR.
func (d runsDifference) print(all, flips, asJSON bool) error {
	d.scores = scores.Distinct(d.scores, untransformed)
	if asJSON {
		return d.printJSON(all, flips)
	}
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

// printDifferences prints a table of the significant differences, or of all, and their number.
func printDifferences(differences []scores.Difference, all bool) {
	beyond := 0
	t := textTable{header: []string{"score", "of", "A", "B", "B - A", ""}}
	var lows, highs, paired []string
	for _, d := range differences {
		if d.Significant() {
			beyond++
		} else if !all {
			continue
		}
		t.rows = append(t.rows, []string{d.A.Measure + "." + d.A.Statistic, d.A.Describe(), fourDigits(d.A.Value), fourDigits(d.B.Value), signed(d.Value), ""})
		lows, highs, paired = append(lows, signed(d.Low)), append(highs, signed(d.High)), append(paired, map[bool]string{true: " paired"}[d.Paired])
	}
	t.align(2, 3, 4)
	lows, highs = alignPoints(lows), alignPoints(highs)
	for i := range t.rows {
		if strings.TrimSpace(lows[i]) != "" {
			t.rows[i][5] = fmt.Sprintf("[%s, %s]%s", lows[i], strings.TrimRight(highs[i], " "), paired[i])
		}
	}
	if len(t.rows) > 0 || all {
		fmt.Fprint(stdout, t.write(terminalWidth(os.Stdout), 1))
	}
	fmt.Fprintf(stdout, "%d of %d scores differ beyond chance (95 %% intervals, not corrected for their number: about %.0f would differ by chance alone)\n",
		beyond, len(differences), scores.ExpectedByChance(differences))
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
		Paired     bool       `json:"paired"` // the interval is that of the paired difference
		Beyond     bool       `json:"beyond"` // the interval of the difference excludes 0
	}
	lines := []line{}
	for _, s := range d.scores {
		if all || s.Significant() {
			lines = append(lines, line{s.A, s.B, interval{number(s.Value), number(s.Low), number(s.High)}, s.Paired, s.Significant()})
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
