package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study"
)

func diffCommand() *cobra.Command {
	var failIf, models []string
	var all, asJSON bool
	c := &cobra.Command{
		Use:   "diff RUN_A RUN_B",
		Short: "Say which scores of two runs differ by more than chance",
		Long: `Compares every score that both runs have. Where both were measured on the same samples in the same order
(the same data and seed) the interval is that of the paired difference. With --fail-if it is a gate: exit 1 if some
difference B - A beyond chance meets the condition; an exclamation mark after it takes chance differences too.`,
		Example: "  noether diff runs/approved runs/candidate\n" +
			"  noether diff runs/approved runs/candidate --fail-if 'effective-invariance.ei < -0.02' --fail-if 'accuracy.moved < -0.01'\n" +
			"  noether diff runs/a runs/b --models resnet20=resnet32",
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, dirs []string) error {
			var gates []scores.Condition
			for _, text := range failIf {
				gate, err := scores.ParseCondition(text)
				if err != nil {
					return usagef(c, "--fail-if: %v", err)
				}
				gates = append(gates, gate)
			}
			renamed, err := parsePairs(models)
			if err != nil {
				return usagef(c, "--models: %v", err)
			}
			differences, err := diffRuns(dirs[0], dirs[1], renamed)
			if err != nil {
				return err
			}
			if asJSON {
				err = printDifferencesJSON(differences, all)
			} else {
				err = printDifferences(differences, all)
			}
			if err != nil {
				return err
			}
			return checkGates(gates, differences)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&failIf, "fail-if", nil, "fail where a difference B - A meets this: SCORE < NUMBER or SCORE > NUMBER; may be given several times")
	f.StringSliceVar(&models, "models", nil, "A=B: which model of the second run a model of the first is compared with, where their names differ")
	f.BoolVar(&all, "all", false, "list every score, not just those that differ beyond chance")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

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

// diffRuns compares two run folders. Where each has one model their names need not agree.
func diffRuns(dirA, dirB string, models map[string]string) ([]scores.Difference, error) {
	a, recordA, err := study.ReadCells(dirA)
	if err != nil {
		return nil, err
	}
	b, recordB, err := study.ReadCells(dirB)
	if err != nil {
		return nil, err
	}
	if len(models) == 0 && len(recordA.Models) == 1 && len(recordB.Models) == 1 {
		models = map[string]string{recordA.Models[0].Name: recordB.Models[0].Name}
	}
	for from, to := range models {
		if !hasModel(recordA, from) || !hasModel(recordB, to) {
			return nil, fmt.Errorf("--models %s=%s: %s has %s, %s has %s", from, to, dirA, modelNames(recordA), dirB, modelNames(recordB))
		}
	}
	differences := scores.Comparison{Models: models, SameSamples: scores.SameSamples(recordA, recordB)}.Diff(a, b)
	if len(differences) == 0 {
		return nil, fmt.Errorf("%s and %s have no score in common (models %s and %s; see --models)", dirA, dirB, modelNames(recordA), modelNames(recordB))
	}
	return differences, nil
}

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

func checkGates(gates []scores.Condition, differences []scores.Difference) error {
	var failed []string
	for _, gate := range gates {
		found, err := gate.Failing(differences)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			worst := found[0]
			failed = append(failed, fmt.Sprintf("%s: %d differences, the largest %+.4g (%s)", gate, len(found), worst.Value, place(worst.A)))
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("not let through: %s", strings.Join(failed, "; "))
	}
	return nil
}

// place says in few words what a row is of.
func place(r scores.Row) string {
	parts := []string{r.Model}
	for _, p := range []string{r.OtherModel, r.Layer, r.Data, r.Transform} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if r.Parameter != "" {
		parts[len(parts)-1] += "=" + r.Parameter
	}
	if r.Factor != "" {
		parts = append(parts, r.Factor)
	}
	return strings.Join(parts, ", ")
}

func printDifferences(differences []scores.Difference, all bool) error {
	beyond := 0
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "score\tof\tA\tB\tB - A\t\t")
	for _, d := range differences {
		if d.Beyond() {
			beyond++
		} else if !all {
			continue
		}
		fmt.Fprintf(t, "%s.%s\t%s\t%.4g\t%.4g\t%+.4g\t%s\t\n", d.A.Measure, d.A.Statistic, place(d.A), d.A.Value, d.B.Value, d.Value, bounds(d))
	}
	if beyond > 0 || all {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Printf("%d of %d scores differ beyond chance (95 %% intervals, not corrected for their number: about %.0f would by luck)\n",
		beyond, len(differences), 0.05*float64(len(differences)))
	return nil
}

func bounds(d scores.Difference) string {
	if math.IsNaN(d.Low) {
		return ""
	}
	paired := ""
	if d.Paired {
		paired = " paired"
	}
	return fmt.Sprintf("[%+.4g, %+.4g]%s", d.Low, d.High, paired)
}

func printDifferencesJSON(differences []scores.Difference, all bool) error {
	type line struct {
		A          scores.Row `json:"a"`
		B          scores.Row `json:"b"`
		Difference interval   `json:"difference"`
		Paired     bool       `json:"paired"`
		Beyond     bool       `json:"beyond"`
	}
	lines := []line{}
	for _, d := range differences {
		if all || d.Beyond() {
			lines = append(lines, line{d.A, d.B, interval{number(d.Value), number(d.Low), number(d.High)}, d.Paired, d.Beyond()})
		}
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", " ")
	return e.Encode(lines)
}
